"""Runs on disk, as they were stored: read, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import integrate

from spinal.data import Splits
from spinal.errors import SpinalError
from spinal.report.statistics import Outcomes
from spinal.runs import RoundRecord, read_rounds, read_settings


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run's folder: where it belongs, its rounds, and its settings (none, if not kept)."""

    protocol: str
    method: str
    seed: int
    folder: Path
    rounds: list[RoundRecord]
    settings: dict[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether all rounds that its settings ask for are there."""
        return len(self.rounds) > self.settings.get("protocol", {}).get("rounds", 0)

    @property
    def last_labels(self) -> int:
        """Labels at the last round."""
        return self.rounds[-1].labels

    def at(self, labels: int) -> RoundRecord:
        """The round with this number of labels."""
        return next(record for record in self.rounds if record.labels == labels)

    def outcomes(self, labels: int) -> Outcomes | None:
        """Which test points were right at a budget; None if that was not stored."""
        right = self.at(labels).right_points()
        if right is None:
            return None
        indices = self._test_indices
        if indices is None:
            indices = np.arange(len(right))
        return Outcomes(indices, right) if len(indices) == len(right) else None

    @cached_property
    def _test_indices(self) -> NDArray[np.int64] | None:
        """The test points, by the splits beside the runs; None for all points of the dataset."""
        path = self.folder.parents[1] / "splits" / f"seed-{self.seed}.json"
        if path.exists():
            return Splits.load(path).test
        partly = "test" in self.settings.get("protocol", {})
        return np.empty(0, np.int64) if partly else None


def stored_runs(folder: str | Path) -> list[StoredRun]:
    """Every run under ``folder`` that has a round, in the order of its path.

    The protocol is the path from ``folder`` to the runs: folders of runs with the same protocol and
    other settings, side by side, stay apart.

    Raises:
        SpinalError: if there are no runs.
    """
    folder = Path(folder)
    runs = []
    for path in sorted(folder.resolve().glob("**/seed-*/rounds.jsonl")):
        rounds = read_rounds(path)
        above = path.parents[2]
        if rounds:
            inside = above.relative_to(folder.resolve()).as_posix()
            runs.append(
                StoredRun(
                    protocol=above.name if inside == "." else inside,
                    method=path.parts[-3],
                    seed=int(path.parts[-2].removeprefix("seed-")),
                    folder=path.parent,
                    rounds=rounds,
                    settings=read_settings(path.parent),
                )
            )
    if not runs:
        raise SpinalError(f"{folder}: no runs in it; `spinal run` makes some")
    return runs


def rounds_table(runs: list[StoredRun]) -> pd.DataFrame:
    """A row for each round: protocol, method, seed, its numbers, and ``seconds_<phase>``."""
    rows = []
    for run in runs:
        names = {"protocol": run.protocol, "method": run.method, "seed": run.seed}
        for record in run.rounds:
            seconds = {f"seconds_{phase}": s for phase, s in record.seconds.items()}
            rows.append({**names, **record.numbers(), **seconds})
    return pd.DataFrame(rows)


def read_runs(folder: str | Path) -> pd.DataFrame:
    """A row for each round of each run under ``folder``.

    Columns: protocol, method, seed, round, labels, accuracy, nll, ece, the same by the network,
    and ``seconds_<phase>``.

    Raises:
        SpinalError: if there are no runs.
    """
    return rounds_table(stored_runs(folder))


def area_under_curve(labels: np.ndarray, accuracy: np.ndarray) -> float:
    """The mean accuracy over the budget: the area by trapezoids, over the width of the budget."""
    if len(labels) == 1:
        return float(accuracy[0])
    return float(integrate.trapezoid(accuracy, labels) / (labels[-1] - labels[0]))
