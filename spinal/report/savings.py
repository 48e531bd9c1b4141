"""Labels needed to reach an accuracy, and labels saved compared with Random."""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, percent
from spinal.report.parts import Table


def labels_needed(experiment: Experiment) -> Table:
    """The numbers of labels from which each method's mean curve stays above some accuracies."""
    curves = {m: experiment.mean_curve(m).loc[experiment.labels] for m in experiment.methods}
    targets = _targets(curves)
    rows, shown = [], []
    for method, curve in curves.items():
        cells = {"method": title(method)}
        for target in targets:
            needed, first = stays_above(curve, target), first_reached(curve, target)
            row: dict[str, str | float] = {
                "method": method, "accuracy": target, "labels": needed, "first_reached": first,
            }  # fmt: skip
            cell = count(np.ceil(needed)) if not np.isnan(needed) else "not reached"
            if experiment.has_baseline and method != BASELINE:
                by_random = stays_above(curves[BASELINE], target)
                row["saved"] = by_random - needed
                if not np.isnan(by_random - needed):
                    cell += f" ({percent(1 - needed / by_random, 0)} %)"
            if not np.isnan(first) and first != needed:
                cell += f"; first {count(np.ceil(first))}"
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
        "Labels from which the mean curve stays at or above an accuracy, by straight lines "
        f"between rounds{random}. In brackets: saved against Random, where Random reaches it too. "
        "Where the curve falls below the accuracy again, also the labels at which it first "
        "reached it."
    )
    return Table("labels-needed", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""))


def first_reached(curve: pd.Series, target: float) -> float:
    """Where a curve first reaches ``target``, by linear interpolation; NaN if it does not."""
    above = np.flatnonzero(curve.to_numpy(float) >= target)
    return _crossing(curve, target, int(above[0])) if len(above) else np.nan


def stays_above(curve: pd.Series, target: float) -> float:
    """Where a curve reaches ``target`` for the last time; NaN if it ends below."""
    below = np.flatnonzero(curve.to_numpy(float) < target)
    after = int(below[-1]) + 1 if len(below) else 0
    return _crossing(curve, target, after) if after < len(curve) else np.nan


def _crossing(curve: pd.Series, target: float, at: int) -> float:
    """Where the line from the point before position ``at`` of a curve to it meets ``target``."""
    labels, values = curve.index.to_numpy(float), curve.to_numpy(float)
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
