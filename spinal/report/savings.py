"""Labels needed to reach an accuracy, and labels saved compared with Random."""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, percent
from spinal.report.parts import Table


def labels_needed(experiment: Experiment) -> Table:
    """The number of labels at which each method's mean curve first reaches some accuracies."""
    curves = {m: experiment.mean_curve(m).loc[experiment.labels] for m in experiment.methods}
    targets = _targets(curves)
    rows, shown = [], []
    for method, curve in curves.items():
        cells = {"method": title(method)}
        for target in targets:
            needed = first_reached(curve, target)
            row: dict[str, str | float] = {"method": method, "accuracy": target, "labels": needed}
            cell = count(np.ceil(needed)) if not np.isnan(needed) else "not reached"
            if experiment.has_baseline and method != BASELINE:
                by_random = first_reached(curves[BASELINE], target)
                row["saved"] = by_random - needed
                if not np.isnan(by_random - needed):
                    cell += f" ({percent(1 - needed / by_random, 0)} %)"
            rows.append(row)
            cells[f"{percent(target, 1)} %"] = cell
        shown.append(cells)
    reached = curves[BASELINE].iloc[-1] if experiment.has_baseline else np.nan
    random = (
        f"; {percent(reached, 1)} % is what Random reaches in the end"
        if experiment.has_baseline
        else ""
    )
    caption = (
        "Labels needed until the mean curve first reaches an accuracy, by straight lines "
        f"between rounds{random}. In brackets: saved against Random, where Random reaches it too."
    )
    return Table("labels-needed", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""))


def first_reached(curve: pd.Series, target: float) -> float:
    """Where a curve first reaches ``target``, by linear interpolation; NaN if it does not."""
    labels, values = curve.index.to_numpy(float), curve.to_numpy(float)
    above = np.flatnonzero(values >= target)
    if not len(above):
        return np.nan
    at = int(above[0])
    if at == 0:
        return float(labels[0])
    share = (target - values[at - 1]) / (values[at] - values[at - 1])
    return float(labels[at - 1] + share * (labels[at] - labels[at - 1]))


def _targets(curves: dict[str, pd.Series]) -> list[float]:
    """Up to four round accuracies that some method reaches, and the final accuracy of Random."""
    start = max(curve.iloc[0] for curve in curves.values())
    best = max(curve.max() for curve in curves.values())
    levels: list[float] = []
    for step in (0.05, 0.02, 0.01, 0.005, 0.002, 0.001):
        multiples = step * np.arange(1, round(1 / step))
        levels = multiples[(multiples > start) & (multiples <= best)][-4:].round(4).tolist()
        if len(levels) >= 3:
            break
    if BASELINE in curves:
        levels.append(float(curves[BASELINE].iloc[-1]))
    return sorted(levels) or [float(best)]
