"""The pairwise penalty matrix: how often each method beats each other method."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from spinal.report.experiment import Experiment, paired
from spinal.report.names import order, title
from spinal.report.numbers import decimal
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import INK, STYLE, new_figure
from spinal.report.statistics import MIN_SEEDS, beats


def penalties(experiments: Sequence[Experiment]) -> pd.DataFrame:
    r"""How often each method (row) beats each other method (column), summed over experiments.

    An experiment adds to entry :math:`(i, j)` the share of its budgets at which i is better than j
    by a two-sided paired t-test over seeds, at 95 %. So an entry is at most the number of
    experiments. The mean of a column tells how often its method was beaten: lower is better.
    """
    methods = sorted({m for e in experiments for m in e.methods}, key=order)
    matrix = pd.DataFrame(0.0, methods, methods)
    for experiment in experiments:
        for first in experiment.methods:
            for second in experiment.methods:
                if first != second:
                    matrix.loc[first, second] += _share_beaten(experiment, first, second)
    return matrix


def _share_beaten(experiment: Experiment, first: str, second: str) -> float:
    at_budgets = [experiment.accuracy.loc[labels] for labels in experiment.labels]
    return float(np.mean([beats(paired(values, first, second)) for values in at_budgets]))


def section(experiments: Sequence[Experiment]) -> Section | None:
    """The penalty matrix over all experiments with enough seeds; None if there are none."""
    able = [e for e in experiments if len(e.methods) > 1 and _most_pairs(e) >= MIN_SEEDS]
    if not able:
        return None
    matrix = penalties(able)
    n = len(able)
    caption = (
        f"How often the method of a row beats that of a column, over {n} "
        f"experiment{'s' if n > 1 else ''}: the share of budgets at which a paired t-test over "
        f"seeds says so (95 %, two-sided), added up; {n} is the most. Last row: mean of the "
        "column; lower is better."
    )
    data = matrix.rename_axis("method").reset_index()
    means = _column_means(matrix)
    cells = [
        [title(m), *("" if m == other else decimal(matrix.loc[m, other], 2) for other in matrix)]
        for m in matrix
    ]
    cells.append(["mean of the column", *(decimal(mean, 2) for mean in means)])
    shown = pd.DataFrame(cells, columns=["", *map(title, matrix)])
    table = Table("penalties", caption, data, shown)
    drawing = Drawing("penalty-matrix", caption, _penalty_figure(matrix, n))
    names = ", ".join(e.title for e in able)
    return Section("Pairwise comparison", [f"Of {names}."], [drawing, table])


def _most_pairs(experiment: Experiment) -> int:
    """The largest number of seeds that two methods share."""
    seeds = [{run.seed for run in experiment.of(m)} for m in experiment.methods]
    return max(len(a & b) for i, a in enumerate(seeds) for b in seeds[i + 1 :])


def _column_means(matrix: pd.DataFrame) -> NDArray[np.float64]:
    """Mean over the other methods."""
    return (matrix.sum() / max(len(matrix) - 1, 1)).to_numpy()


def _penalty_figure(matrix: pd.DataFrame, most: int) -> Figure:
    n = len(matrix)
    values = np.vstack([matrix.to_numpy(), _column_means(matrix)])
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = new_figure(2.2 + 0.62 * n, 1.6 + 0.42 * n)
        axes = figure.subplots()
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                if i == j:
                    continue
                shade = {"fc": "#0072b2", "alpha": 0.75 * value / most, "lw": 0}
                axes.add_patch(Rectangle((j - 0.48, i - 0.46), 0.96, 0.92, **shade))
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=INK)
        names = [title(m) for m in matrix]
        axes.set_xticks(range(n), names, rotation=35, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(n + 1), [*names, "mean"])
        axes.set_xlim(-0.5, n - 0.5)
        axes.set_ylim(n + 0.5, -0.5)
        axes.axhline(n - 0.5, color=INK, lw=0.8)
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.spines[:].set_visible(False)
    return figure
