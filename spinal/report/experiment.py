"""Runs of one protocol, made comparable: paired seeds, the same budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinal.errors import SpinalError
from spinal.report.names import BASELINE, order
from spinal.report.read import StoredRun, area_under_curve
from spinal.report.statistics import t_interval
from spinal.runs import RoundRecord


@dataclass(frozen=True, eq=False)
class Experiment:
    """The runs of a protocol.

    Attributes:
        name: Name of the protocol.
        runs: The runs that are compared; see `experiments`.
        left_out: Runs that are unfinished or too short to be compared.
        predictor: Whose accuracies are compared: the ``method``, or its ``network``, trained on the
            labels that the method chose.
    """

    name: str
    runs: list[StoredRun]
    left_out: list[StoredRun]
    predictor: Literal["method", "network"] = "method"

    def by_network(self) -> Experiment | None:
        """The same runs, with the predictions of the network; None if all methods use it."""
        other = replace(self, predictor="network")
        return None if other.accuracy.equals(self.accuracy) else other

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in a fixed order."""
        return sorted({run.method for run in self.runs}, key=order)

    @property
    def protocol(self) -> dict[str, Any]:
        """The settings of the protocol, as stored with the runs; empty if they were not stored."""
        return next((r.settings["protocol"] for r in self.runs if "protocol" in r.settings), {})

    @property
    def title(self) -> str:
        """The title of the protocol, or its name if it has no title."""
        title = self.protocol.get("title") or self.name
        return title if self.predictor == "method" else f"{title}, by the network"

    @property
    def file_name(self) -> str:
        """The name, for use in file names."""
        return self.name.replace("/", "-")

    @property
    def paper(self) -> str | None:
        """The paper's table to compare with, if the settings name one."""
        return self.protocol.get("paper")

    def of(self, method: str) -> list[StoredRun]:
        """The runs of a method, by seed."""
        return sorted((run for run in self.runs if run.method == method), key=lambda r: r.seed)

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """Accuracy by labels (rows) and by method and seed (columns); NaN beyond a run's end."""
        return self.measure("accuracy" if self.predictor == "method" else "network_accuracy")

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The budgets that all runs have reached."""
        return self.accuracy.dropna().index.to_numpy()

    def measure(self, name: str) -> pd.DataFrame:
        """A number of each round, such as ``nll``, in the layout of `accuracy`."""
        return self.tabulate(lambda record: getattr(record, name))

    def tabulate(self, get: Callable[[RoundRecord], float | None]) -> pd.DataFrame:
        """``get`` of each round, in the layout of `accuracy`; NaN for None."""
        columns = {
            (run.method, run.seed): pd.Series(
                {record.labels: get(record) for record in run.rounds}, dtype=float
            )
            for method in self.methods
            for run in self.of(method)
        }
        return pd.DataFrame(columns).rename_axis(columns=["method", "seed"]).sort_index()

    def mean_curve(self, method: str, measure: pd.DataFrame | None = None) -> pd.Series:
        """Mean over seeds, at the budgets that all seeds of the method have reached."""
        return self._whole(method, measure).mean(axis=1)

    def deviation_curve(self, method: str) -> pd.Series:
        """Standard deviation over seeds; NaN for a single seed."""
        return self._whole(method, None).std(axis=1)

    def _whole(self, method: str, measure: pd.DataFrame | None) -> pd.DataFrame:
        return (self.accuracy if measure is None else measure)[method].dropna()

    @cached_property
    def areas(self) -> pd.Series:
        """Area under the accuracy curve, over the budgets that all runs share."""
        shared = self.accuracy.loc[self.labels]
        return shared.apply(lambda curve: area_under_curve(self.labels, curve.to_numpy()))

    @cached_property
    def final(self) -> pd.Series:
        """Accuracy at the last budget that all runs share."""
        return self.accuracy.loc[self.labels[-1]]

    @property
    def has_baseline(self) -> bool:
        """Whether there are runs of Random to compare with."""
        return BASELINE in self.methods


def paired(values: pd.Series, first: str, second: str) -> NDArray[np.float64]:
    """Differences between two methods, for the seeds that both have."""
    return (values[first] - values[second]).dropna().to_numpy(float)


def gain(values: pd.Series, method: str) -> tuple[float, float, float]:
    """Mean difference to Random over paired seeds, and its 95 % interval by Student's t.

    Args:
        values: A value for each method and seed, such as `Experiment.areas`.
        method: The method to compare with Random.

    Returns:
        The mean, and both ends of the interval; NaN if there are too few seeds.
    """
    differences = paired(values, method, BASELINE)
    mean = float(differences.mean()) if len(differences) else np.nan
    return (mean, *t_interval(differences))


def experiments(runs: list[StoredRun]) -> list[Experiment]:
    """Group runs by protocol, and select those that can be compared.

    If a protocol has finished runs, unfinished ones are left out, since means over seeds would jump
    where they stop. Methods are compared up to the budget that all of them have reached; runs that
    stop before it are left out too.
    """
    by_protocol = groupby(sorted(runs, key=lambda run: run.protocol), lambda run: run.protocol)
    return [_experiment(name, list(of_protocol)) for name, of_protocol in by_protocol]


def _experiment(name: str, runs: list[StoredRun]) -> Experiment:
    comparable = [run for run in runs if run.is_finished] or runs
    reached = {
        method: max(r.last_labels for r in group) for method, group in _by_method(comparable)
    }
    budget = min(reached.values())
    comparable = [run for run in comparable if run.last_labels >= budget]
    if not set.intersection(*({record.labels for record in run.rounds} for run in comparable)):
        names = ", ".join(sorted({run.method for run in comparable}))
        raise SpinalError(
            f"{name}: its runs ({names}) have no number of labels in common: make those with other "
            "settings in another folder"
        )
    return Experiment(name, comparable, [run for run in runs if run not in comparable])


def _by_method(runs: list[StoredRun]) -> Iterator[tuple[str, list[StoredRun]]]:
    for method in sorted({run.method for run in runs}):
        yield method, [run for run in runs if run.method == method]
