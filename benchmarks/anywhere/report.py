"""The page of the results: numbers over all cells, and a picture of each set."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.anywhere.pictures import picture_of_all, picture_of_set
from benchmarks.anywhere.summary import read_cells, summarise
from spinal.report.plots import save

_HALVES = {"report": "The half to report on", "develop": "The half to develop on"}
_INTRODUCTION = """\
# Classifiers side by side, with few labels drawn at random

`python -m benchmarks.anywhere`, described in `benchmarks/README.md`. A cell is a set, the length of
its tail and a number of labels; its numbers are means over seeds. **Regret** is the distance in
accuracy to the best contender of the cell, in points. Long-tailed cells have a test set whose
classes are weighted as those of the pool; there, balanced accuracy, the mean over classes, is
given too. Seconds are those of one core, training of the network included for head and SPN.
"""


def write_report(out: Path) -> None:
    """Write README.md, cells.csv and the pictures into the folder of the results."""
    cells = read_cells(out)
    cells.round(5).to_csv(out / "cells.csv", index=False)
    lines = [_INTRODUCTION, _origin(cells)]
    for half, title in _HALVES.items():
        part = cells[cells["half"] == half]
        if part.empty:
            continue
        save(picture_of_all(part), out / f"{half}.svg")
        lines += [f"## {title}\n", _table(summarise(part)), f"![Rank and regret]({half}.svg)\n"]
        for name, of_set in part.groupby("set"):
            save(picture_of_set(of_set), out / f"{name}.svg")
            lines += [
                f"### {name}, {int(of_set['classes'].iloc[0])} classes\n",
                f"![]({name}.svg)\n",
            ]
    (out / "README.md").write_text("\n".join(lines))


def _origin(cells: pd.DataFrame) -> str:
    """Which commits and seeds the numbers are of."""
    lines = ["| contender | cells | seeds | commit |", "|---|---|---|---|"]
    for contender, part in cells.groupby("contender", sort=False):
        seeds = part["seeds"].unique()
        shown = seeds[0] if len(seeds) == 1 else "; ".join(sorted(seeds))
        commits = ", ".join(sorted(set(", ".join(part["commit"]).split(", "))))
        lines.append(f"| {contender} | {len(part)} | {shown} | {commits} |")
    return "\n".join(lines) + "\n"


def _table(summary: pd.DataFrame) -> str:
    """A table in Markdown; numbers are text already."""
    rows = [summary.columns, ["---"] * len(summary.columns), *summary.to_numpy()]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows) + "\n"
