"""Pictures: accuracy and likelihood over the labels for a set, rank and regret for all."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, PercentFormatter

from benchmarks.anywhere.summary import rank, regret
from spinal.report.plots import STYLE, new_figure

# Told apart by people who do not see red and green alike, and by marker.
_LOOK = {
    "spn": ("#0072b2", "o", "-"),
    "spn-before": ("#0072b2", "o", (0, (2, 2))),
    "head": ("#009e73", "s", "-"),
    "logistic": ("#d55e00", "^", "-"),
    "gda": ("#c0669a", "D", "-"),
    "knn": ("#6e6e6e", "v", "-"),
    "forest": ("#8b5a2b", "P", "-"),
}
_TAILS = {1: "as it is", 10: "long-tailed, 10 : 1", 100: "long-tailed, 100 : 1"}


def picture_of_set(cells: pd.DataFrame) -> Figure:
    """Accuracy above, likelihood below; a column for each length of the tail."""
    tails = sorted(cells["tail"].unique())
    with mpl.rc_context(STYLE):
        figure = new_figure(2.2 + 2.6 * len(tails), 5.0)
        grid = figure.subplots(2, len(tails), sharex=True, sharey="row", squeeze=False)
        for column, tail in zip(grid.T, tails, strict=True):
            column[0].set_title(_TAILS[tail], loc="left")
            for name, part in cells[cells["tail"] == tail].groupby("contender", sort=False):
                _draw(column[0], part["labels"], 100 * part["accuracy"], str(name))
                _draw(column[1], part["labels"], part["nll"], str(name))
            column[1].set_xlabel("labels")
            _label_axis(column[1], sorted(cells["labels"].unique()))
        grid[0, 0].set_ylabel("accuracy (%)")
        grid[1, 0].set_ylabel("negative log-likelihood (nats)")
        _limit_above(grid[1, 0], cells["nll"])
        handles, names = max(
            (a.get_legend_handles_labels() for a in grid[0]), key=lambda h: len(h[1])
        )
        figure.legend(handles, names, loc="outside right upper")
    return figure


def picture_of_all(cells: pd.DataFrame) -> Figure:
    """How far below the best of each cell contenders are, and their mean ranks."""
    regrets = regret(cells)
    ranks = {"accuracy": rank(cells, "accuracy").mean(), "NLL": rank(cells, "nll").mean()}
    with mpl.rc_context(STYLE):
        figure = new_figure(9.6, 3.8)
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        for name in regrets:
            values = np.sort(regrets[name].dropna())
            values = np.concatenate([values[:1], values])  # the first step starts at 0 %
            colour, _, dashes = _LOOK[str(name)]
            share = np.arange(len(values)) / (len(values) - 1)
            left.step(values, share, where="post", color=colour, ls=dashes, label=str(name))
        left.set_xlabel("regret in accuracy (points)")
        left.set_ylabel("share of cells with at most that")
        left.set_xscale("symlog", linthresh=1)
        left.set_xticks([0, 1, 3, 10, 30], ["0", "1", "3", "10", "30"])
        left.set_xlim(0, 60)
        left.set_ylim(0, 1.02)
        left.xaxis.set_minor_locator(NullLocator())
        left.yaxis.set_major_formatter(PercentFormatter(1))
        left.legend(loc="lower right")
        for i, name in enumerate(regrets):
            colour, _, dashes = _LOOK[str(name)]
            face = colour if dashes == "-" else "white"
            a, b = ranks["accuracy"][name], ranks["NLL"][name]
            right.plot([a, b], [i, i], color=colour, lw=0.8)
            right.plot(a, i, marker="o", color=colour, mfc=face, ms=7)
            right.plot(b, i, marker="s", color=colour, mfc=face, ms=6)
        right.plot([], [], "o", color="k", label="by accuracy")
        right.plot([], [], "s", color="k", label="by likelihood")
        right.set_yticks(range(regrets.shape[1]), list(regrets))
        right.set_ylim(regrets.shape[1] - 0.5, -1.2)
        right.set_xlabel("mean rank, 1 is best")
        right.legend(loc="upper left", ncols=2, borderaxespad=0, handletextpad=0.2)
    return figure


def _draw(axes: Axes, labels: pd.Series, values: pd.Series, name: str) -> None:
    colour, marker, dashes = _LOOK[name]
    axes.plot(
        labels, values, color=colour, ls=dashes, marker=marker, ms=4,
        mfc=colour if dashes == "-" else "white", label=name, lw=1.4,
        zorder=3 if name.startswith("spn") else 2,
    )  # fmt: skip


def _label_axis(axes: Axes, labels: list[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(labels, [f"{n:,}" for n in labels])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def _limit_above(axes: Axes, values: pd.Series) -> None:
    """Leave out the few values that are so high that nothing else could be seen."""
    low, high = axes.get_ylim()
    axes.set_ylim(low if low > 0 else 0, min(high, 3 * values.median()))
