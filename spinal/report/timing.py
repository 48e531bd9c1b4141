"""Run times: seconds by phase, and ratios to Random."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from spinal.report.experiment import Experiment
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, decimal
from spinal.report.paper import accuracies, run_times
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import SHADES, STYLE, new_figure

_PHASES = ("network", "features", "posterior", "scoring", "choice")


def section(experiment: Experiment) -> Section | None:
    """Seconds of a run; None if they were not stored."""
    seconds = phases(experiment)
    if seconds.empty:
        return None
    caption = (
        f"Seconds of a complete run up to {count(experiment.labels[-1])} labels by phase, mean "
        "over seeds; testing is not counted."
    )
    text = ["Runs that shared the machine with others took longer than they would alone."]
    drawing = Drawing("seconds", caption, _figure(seconds, experiment.title))
    return Section("Time", text, [drawing, _table(experiment, seconds)])


def phases(experiment: Experiment) -> pd.DataFrame:
    """Seconds of a run, mean over seeds: one row per method, one column per phase."""
    budget = experiment.labels[-1]
    rows: dict[str, pd.Series] = {}
    for method in experiment.methods:
        runs = [
            pd.DataFrame([record.seconds for record in run.rounds if record.labels <= budget])
            for run in experiment.of(method)
        ]
        rows[method] = pd.DataFrame([run.sum() for run in runs]).mean()
    table = pd.DataFrame(rows).T
    return table[sorted(table, key=_place)].fillna(0.0).loc[lambda t: t.sum(axis=1) > 0]


def _place(phase: str) -> tuple[int, str]:
    return (_PHASES.index(phase) if phase in _PHASES else len(_PHASES), phase)


def _table(experiment: Experiment, seconds: pd.DataFrame) -> Table:
    printed = run_times()
    theirs = printed[printed["table"] == experiment.paper].set_index("method")["seconds"]
    total = seconds.sum(axis=1)
    rows, shown = [], []
    for method in seconds.index:
        row = {"method": method, **seconds.loc[method], "seconds": total[method]}
        row["ratio"] = total[method] / total.get(BASELINE, np.nan)
        row["paper_seconds"] = theirs.get(method, np.nan)
        row["paper_ratio"] = theirs.get(method, np.nan) / theirs.get(BASELINE, np.nan)
        rows.append(row)
        cells = {"method": title(method)}
        cells |= {phase: decimal(seconds.loc[method, phase], 1) for phase in seconds}
        cells |= {"seconds": decimal(row["seconds"], 1), "to Random": decimal(row["ratio"], 2)}
        if len(theirs):
            cells |= {
                "paper: seconds": count(row["paper_seconds"]),
                "paper: to Random": decimal(row["paper_ratio"], 2),
            }
        shown.append(cells)
    caption = "Seconds of a complete run by phase, and the ratio to Random's."
    if len(theirs):
        caption += " The paper's are of a Tesla P100: compare ratios, not seconds."
        printed = accuracies()
        whole = printed[printed["table"] == experiment.paper]["labels"].max()
        if experiment.labels[-1] < whole:
            caption += f" Its runs go to {count(whole)} labels, ours to fewer."
    return Table("run-time", caption, pd.DataFrame(rows), pd.DataFrame(shown))


def _figure(seconds: pd.DataFrame, name: str) -> Figure:
    with mpl.rc_context({**STYLE, "axes.grid.axis": "x"}):
        figure = new_figure(height=1.5 + 0.32 * len(seconds))
        axes = figure.subplots()
        left = np.zeros(len(seconds))
        names = [title(method) for method in seconds.index]
        for phase in seconds:
            width = seconds[phase].to_numpy()
            shade = SHADES[min(_place(str(phase))[0], len(SHADES) - 1)]
            if width.max() > 0.003 * seconds.sum(axis=1).max():  # others would be invisible
                axes.barh(names, width, left=left, color=shade, height=0.62, label=phase)
            left += width
        axes.invert_yaxis()
        axes.margins(y=0.02)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("seconds a run")
        figure.legend(loc="outside upper right", ncols=len(seconds.columns), handlelength=0.8)
        axes.set_title(name, loc="left")
    return figure
