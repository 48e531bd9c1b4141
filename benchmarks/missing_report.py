"""The report of `benchmarks.missing`: mean ranks, accuracy on each table, and a figure."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from spinal.report.plots import STYLE, new_figure, save

CELL = ["half", "table", "labels", "missing", "seed"]
_HALVES = {"report": "The half to report on", "develop": "The half to develop on"}
_LOOK = {
    "spn": ("#0072b2", "o"),
    "logistic": ("#d55e00", "^"),
    "boosting": ("#6e6e6e", "v"),
    "forest": ("#8b5a2b", "P"),
}
_INTRODUCTION = """\
# Tables with missing values

`python -m benchmarks.missing`, described in `benchmarks/README.md`. Cells of each table are removed
at random, from the labelled and the test points alike. **Rank** is that in accuracy among the four
classifiers in a table with so many labels and one seed, 1 for the best, and its mean is over all of
these. Nothing was chosen by the half to report on.
"""


def read_cells(out: Path) -> pd.DataFrame:
    """All results, of the cells in which every contender has one."""
    lines = [json.loads(text) for text in (out / "results.jsonl").read_text().splitlines()]
    cells = pd.DataFrame(lines)
    return cells[cells.groupby(CELL)["contender"].transform("nunique") == len(_LOOK)]


def mean_ranks(cells: pd.DataFrame, column: str = "accuracy") -> pd.DataFrame:
    """Mean rank of each contender: rows by half and share of missing values."""
    wide = cells.pivot_table(index=CELL, columns="contender", values=column)[list(_LOOK)]
    return wide.rank(axis=1, ascending=column == "nll").groupby(["half", "missing"]).mean()


def write_report(out: Path) -> None:
    """Write README.md and the picture into the folder of the results."""
    cells = read_cells(out)
    ranks, by_likelihood = mean_ranks(cells), mean_ranks(cells, "nll")
    save(_picture(ranks), out / "ranks.svg")
    lines = [_INTRODUCTION, _origin(cells), "![Mean ranks](ranks.svg)\n"]
    for half, title in _HALVES.items():
        part = cells[cells["half"] == half]
        if part.empty:
            continue
        lines += [f"## {title}\n", "Mean rank in accuracy (in likelihood):\n"]
        columns = {
            name: [
                f"{a:.2f} ({b:.2f})"
                for a, b in zip(ranks.loc[half][name], by_likelihood.loc[half][name], strict=True)
            ]
            for name in _LOOK
        }
        lines += [_table(pd.DataFrame({"missing": _shares(ranks.loc[half].index), **columns}))]
        lines += ["Accuracy (%), mean over labels and seeds:\n"]
        accuracy = 100 * part.pivot_table(
            index=["table", "missing"], columns="contender", values="accuracy"
        )
        accuracy = accuracy[list(_LOOK)].round(1).reset_index()
        accuracy["missing"] = _shares(accuracy["missing"])
        lines += [_table(accuracy)]
    (out / "README.md").write_text("\n".join(lines))


def _picture(ranks: pd.DataFrame) -> Figure:
    """Mean rank over the share of missing values, a panel for each half."""
    halves = [half for half in _HALVES if half in ranks.index]
    with mpl.rc_context(STYLE):
        figure = new_figure(2.0 + 2.8 * len(halves), 3.2)
        panels = figure.subplots(1, len(halves), sharey=True, squeeze=False)[0]
        for axes, half in zip(panels, halves, strict=True):
            for name, (colour, marker) in _LOOK.items():
                values = ranks.loc[half][name]
                axes.plot(values.index, values, color=colour, marker=marker, label=name)
            axes.set_title(half, loc="left")
            axes.set_xlabel("missing values")
            axes.set_xticks(ranks.loc[half].index)
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        panels[0].set_ylabel("mean rank in accuracy")
        panels[0].invert_yaxis()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    return figure


def _origin(cells: pd.DataFrame) -> str:
    """Which commits, labels and seeds the numbers are of."""
    lines = ["| contender | cells | labels | seeds | commit |", "|---|---|---|---|---|"]
    for name in _LOOK:
        part = cells[cells["contender"] == name]
        shown = [
            ", ".join(map(str, sorted(part[key].unique()))) for key in ("labels", "seed", "commit")
        ]
        lines.append(f"| {name} | {len(part)} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _shares(values: pd.Index | pd.Series) -> list[str]:
    return [f"{100 * value:.0f} %" for value in values]


def _table(frame: pd.DataFrame) -> str:
    rows = [frame.columns, ["---"] * len(frame.columns), *frame.to_numpy()]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows) + "\n"
