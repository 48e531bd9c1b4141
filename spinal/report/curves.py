"""Accuracy over the labels: curves, the paper's curves behind them, its tables beside ours."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinal.experiments.paper import accuracies
from spinal.report.experiment import Experiment
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, percent, points
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import STYLE, label_ends, look, new_figure

#: A network that learns fewer of its labels was not trained for long enough.
FITTED = 0.9


def section(experiment: Experiment) -> Section:
    """The curves, with and without deviations, the gain over Random, and the paper's tables."""
    seeds = _seeds(experiment)
    ours = f"Test accuracy over the labels, mean of {seeds}."
    printed = paper_curves(experiment)
    behind = " Thin lines with circles: the paper's." if len(printed) else ""
    parts: list[Table | Drawing] = [
        Drawing("curves", ours + behind, learning_curves(experiment, band=False, paper=True))
    ]
    if experiment.accuracy.columns.get_level_values("seed").nunique() > 1:
        caption = f"{ours} Bands: one standard deviation over the seeds."
        parts.append(Drawing("curves-deviation", caption, learning_curves(experiment)))
    if experiment.has_baseline and len(experiment.methods) > 1:
        caption = (
            f"Accuracy minus Random's of the same seed, mean of {seeds}, in percentage points. "
            "Bands: one standard error of the mean, where there are seeds to tell."
        )
        parts.append(Drawing("gain", caption, gain_curves(experiment)))
    table = beside_paper(experiment)
    if table is not None:
        parts.append(table)
    return Section("Accuracy", _notes(experiment), parts)


def _seeds(experiment: Experiment) -> str:
    counts = {len(experiment.of(method)) for method in experiment.methods}
    low, high = min(counts), max(counts)
    if low == high:
        return f"{high} seed" + ("s" if high > 1 else "")
    return f"{low} to {high} seeds"


def _notes(experiment: Experiment) -> list[str]:
    notes = []
    if experiment.left_out:
        names = [f"{title(r.method)}, seed {r.seed} ({r.last_labels})" for r in experiment.left_out]
        notes.append(
            f"Left out, because unfinished or shorter than the {count(experiment.labels[-1])} "
            f"labels compared (labels so far in brackets): {'; '.join(names)}."
        )
    unfitted = _unfitted(experiment)
    if unfitted:
        names = [f"{title(method)} ({percent(share, 0)} %)" for method, share in unfitted.items()]
        notes.append(
            "Not to be trusted: networks were trained for too few steps to learn their own labels. "
            "Points that a method asks for are harder than random ones, so that it looks worse "
            f"than it is. Fitted in the worst round: {', '.join(names)}."
        )
    return notes


def _unfitted(experiment: Experiment) -> dict[str, float]:
    """The smallest share of their labels that networks of a method learnt, where it is low."""
    smallest = {
        method: min(
            line.get("fitted_share", 1.0) for run in experiment.of(method) for line in run.rounds
        )
        for method in experiment.methods
    }
    return {method: share for method, share in smallest.items() if share < FITTED}


def learning_curves(experiment: Experiment, band: bool = True, paper: bool = False) -> Figure:
    """Mean accuracy over the labels, a line for each method.

    Args:
        experiment: whose runs to show.
        band: whether to show one deviation around the mean.
        paper: whether to show the paper's curves behind.
    """
    with mpl.rc_context(STYLE):
        figure = new_figure()
        axes = figure.subplots()
        if paper:
            _draw_paper(axes, experiment)
        ends = []
        for method in experiment.methods:
            mean = 100 * experiment.mean_curve(method)
            style = look(method, experiment.methods)
            axes.plot(mean.index, mean, color=style.colour, ls=style.dashes)
            if band:
                deviation = 100 * experiment.deviation_curve(method).fillna(0)
                low, high = mean - deviation, mean + deviation
                axes.fill_between(mean.index, low, high, color=style.colour, alpha=0.15, lw=0)
            ends.append((method, float(mean.index[-1]), float(mean.iloc[-1])))
        axes.set_xlabel("labels")
        axes.set_ylabel("test accuracy (%)")
        axes.set_title(experiment.title, loc="left")
        figure.draw_without_rendering()  # the layout, which places of names depend on
        label_ends(axes, ends)
    return figure


def _draw_paper(axes: Axes, experiment: Experiment) -> None:
    for method, curve in paper_curves(experiment).groupby("method"):
        colour = look(str(method)).colour
        axes.plot(
            curve["labels"], 100 * curve["accuracy"], color=colour, lw=0.8, alpha=0.7, marker="o",
            ms=4, mfc="none", mew=0.8,
        )  # fmt: skip


def gain_curves(experiment: Experiment) -> Figure:
    """Accuracy minus Random's, seed by seed, with one standard error."""
    baseline = experiment.accuracy[BASELINE]
    with mpl.rc_context(STYLE):
        figure = new_figure(height=3.6)
        axes = figure.subplots()
        first, last = baseline.dropna().index[[0, -1]]
        axes.plot([first, last], [0, 0], color=look(BASELINE).colour)
        ends = [(BASELINE, float(last), 0.0)]
        for method in experiment.methods:
            if method == BASELINE:
                continue
            gains = 100 * (experiment.accuracy[method] - baseline).dropna(axis=1, how="all")
            gains = gains.dropna()
            if gains.empty:  # no seed in common
                continue
            mean, style = gains.mean(axis=1), look(method, experiment.methods)
            axes.plot(mean.index, mean, color=style.colour, ls=style.dashes)
            if gains.shape[1] > 1:
                error = gains.sem(axis=1)
                axes.fill_between(
                    mean.index, mean - error, mean + error, color=style.colour, alpha=0.15, lw=0
                )
            ends.append((method, float(mean.index[-1]), float(mean.iloc[-1])))
        axes.set_xlabel("labels")
        axes.set_ylabel("gain over Random (points)")
        axes.set_title(experiment.title, loc="left")
        figure.draw_without_rendering()
        label_ends(axes, ends)
    return figure


def paper_curves(experiment: Experiment) -> pd.DataFrame:
    """The paper's accuracies of the methods shown, up to the budget shown; may be empty."""
    printed = accuracies()
    return printed[
        (printed["table"] == experiment.paper)
        & printed["method"].isin(experiment.methods)
        & (printed["labels"] <= experiment.accuracy.index[-1])
    ]


def beside_paper(experiment: Experiment) -> Table | None:
    """Our accuracies and the paper's at its budgets, and the difference; None without a table."""
    printed = paper_curves(experiment)
    printed = printed[printed["labels"].isin(experiment.accuracy.index)]
    rows, shown = [], []
    for method in experiment.methods:
        theirs = printed[printed["method"] == method].set_index("labels")
        mean, deviation = experiment.mean_curve(method), experiment.deviation_curve(method)
        theirs = theirs[theirs.index.isin(mean.index)]
        if theirs.empty:
            continue
        lines: dict[str, dict[str, str]] = {"ours": {}, "paper": {}, "difference": {}}
        for labels, line in theirs.iterrows():
            difference = mean[labels] - line["accuracy"]
            rows.append({
                "method": method, "labels": labels, "seeds": len(experiment.of(method)),
                "accuracy": mean[labels], "deviation": deviation[labels],
                "paper_accuracy": line["accuracy"], "paper_deviation": line["deviation"],
                "difference": difference,
            })  # fmt: skip
            at = count(float(str(labels)))
            lines["ours"][at] = percent(mean[labels])
            lines["paper"][at] = percent(line["accuracy"])
            lines["difference"][at] = points(difference)
        shown += [{"method": title(method), "": who, **cells} for who, cells in lines.items()]
    if not rows:
        return None
    caption = (
        "Mean accuracy in percent by number of labels, ours and the paper's (five runs), and the "
        "difference in percentage points."
    )
    return Table("paper", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""), words=2)
