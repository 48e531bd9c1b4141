"""Runs on disk as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import integrate

from spinal.errors import SpinalError
from spinal.experiments.runs import read_rounds


def read_runs(folder: str | Path) -> pd.DataFrame:
    """A row for each round of each run under ``folder``.

    Columns: protocol, method, seed, round, labels, accuracy, nll, ece, the same by the network,
    and ``seconds_<phase>``.

    Raises:
        SpinalError: if there are no runs.
    """
    folder = Path(folder)
    rows = []
    for path in sorted(folder.glob("**/seed-*/rounds.jsonl")):
        protocol, method, seed = path.parts[-4:-1]
        for line in read_rounds(path):
            seconds = {f"seconds_{name}": value for name, value in line.pop("seconds", {}).items()}
            line = {name: v for name, v in line.items() if isinstance(v, int | float)}
            names = {
                "protocol": protocol,
                "method": method,
                "seed": int(seed.removeprefix("seed-")),
            }
            rows.append({**names, **line, **seconds})
    if not rows:
        raise SpinalError(f"{folder}: no runs in it; `spinal run` makes some")
    return pd.DataFrame(rows)


def area_under_curve(labels: np.ndarray, accuracy: np.ndarray) -> float:
    """The mean accuracy over the budget: the area by trapezoids, over the width of the budget."""
    if len(labels) == 1:
        return float(accuracy[0])
    return float(integrate.trapezoid(accuracy, labels) / (labels[-1] - labels[0]))
