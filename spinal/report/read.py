"""Reading of runs on disk."""

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
from spinal.runs import RoundRecord, read_rounds, read_settings, seed_of


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run on disk: protocol, method, seed, rounds, and settings (empty if not stored)."""

    protocol: str
    method: str
    seed: int
    folder: Path
    rounds: list[RoundRecord]
    settings: dict[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether all rounds of its protocol are done."""
        return len(self.rounds) > self.settings.get("protocol", {}).get("rounds", 0)

    @property
    def last_labels(self) -> int:
        """Number of labels in the last round."""
        return self.rounds[-1].labels

    def at(self, labels: int) -> RoundRecord:
        """The round with this number of labels."""
        return next(record for record in self.rounds if record.labels == labels)

    def test_points(self) -> int | None:
        """Number of test points; None if it was not stored."""
        bins = self.rounds[0].reliability
        return None if bins is None else int(sum(bins["count"]))

    def outcomes(self, labels: int) -> Outcomes | None:
        """Which test points were right at a budget; None if it was not stored."""
        right = self.at(labels).right_points()
        if right is None:
            return None
        indices = self._test_indices
        if indices is None:
            indices = np.arange(len(right))
        return Outcomes(indices, right) if len(indices) == len(right) else None

    @cached_property
    def _test_indices(self) -> NDArray[np.int64] | None:
        """The test points, from the splits beside the runs; None if all test points are used."""
        path = self.folder.parents[1] / "splits" / f"seed-{self.seed}.json"
        if path.exists():
            return Splits.load(path).test
        partly = "test" in self.settings.get("protocol", {})
        return np.empty(0, np.int64) if partly else None


def stored_runs(folder: str | Path) -> list[StoredRun]:
    """Every run under ``folder`` with at least one round, in the order of paths.

    The protocol is the path from ``folder`` to the runs, so folders with runs of the same protocol
    and different settings stay separate.

    Raises:
        SpinalError: if there are no runs.
    """
    folder = Path(folder)
    runs = []
    for path in sorted(folder.resolve().glob("**/seed-*/rounds.jsonl")):
        seed = seed_of(path.parent)
        if seed is None:
            continue
        rounds = read_rounds(path)
        above = path.parents[2]
        if rounds:
            inside = above.relative_to(folder.resolve()).as_posix()
            runs.append(
                StoredRun(
                    protocol=above.name if inside == "." else inside,
                    method=path.parts[-3],
                    seed=seed,
                    folder=path.parent,
                    rounds=rounds,
                    settings=read_settings(path.parent),
                )
            )
    if not runs:
        raise SpinalError(f"{folder}: no runs in it; `spinal run` makes some")
    return runs


def rounds_table(runs: list[StoredRun]) -> pd.DataFrame:
    """One row per round: protocol, method, seed, its numbers, and ``seconds_<phase>``."""
    rows = []
    for run in runs:
        names = {"protocol": run.protocol, "method": run.method, "seed": run.seed}
        for record in run.rounds:
            seconds = {f"seconds_{phase}": s for phase, s in record.seconds.items()}
            rows.append({**names, **record.numbers(), **seconds})
    return pd.DataFrame(rows)


def read_runs(folder: str | Path) -> pd.DataFrame:
    """One row per round of each run under ``folder``.

    Columns: protocol, method, seed, round, labels, accuracy, nll, ece, the same for the network,
    and ``seconds_<phase>``.

    Raises:
        SpinalError: if there are no runs.
    """
    return rounds_table(stored_runs(folder))


def area_under_curve(labels: np.ndarray, accuracy: np.ndarray) -> float:
    """The area under the curve, by trapezoids, divided by the width of the budget."""
    if len(labels) == 1:
        return float(accuracy[0])
    return float(integrate.trapezoid(accuracy, labels) / (labels[-1] - labels[0]))
