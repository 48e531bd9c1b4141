"""Accuracy by number of labels: our curves and tables, and the paper's."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinal.report.experiment import Experiment
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, percent, points
from spinal.report.paper import accuracies
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import Curve, curve_figure, look

#: A network with a lower accuracy on its training labels was trained for too few steps.
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
            "Bands: one standard error of the mean, if there are several seeds."
        )
        parts.append(Drawing("gain", caption, gain_curves(experiment)))
    tables = (by_predictor(experiment), beside_paper(experiment))
    parts += [table for table in tables if table is not None]
    return Section("Accuracy", _notes(experiment), parts)


def by_predictor(experiment: Experiment) -> Table:
    """Final accuracy of the method, of its network, and of logistic regression.

    All of them are trained on the labels that the method chose.
    """
    names = {
        "accuracy": "by the method",
        "network_accuracy": "by its network",
        "logistic_accuracy": "by logistic regression",
    }
    last = experiment.labels[-1]
    data = pd.DataFrame({"method": experiment.methods})
    for name in names:
        at_end = experiment.measure(name).loc[last]
        data[name] = [at_end[method].mean() for method in experiment.methods]
    shown = pd.DataFrame({"method": data["method"].map(title)})
    for name, heading in names.items():
        shown[heading] = data[name].map(percent)
    caption = (
        f"Test accuracy at {count(last)} labels in percent, mean over seeds, from the labels that "
        "each method chose: by the posterior that the method predicts with, by the network's own "
        "softmax, and by logistic regression on the network's features. Empty: not stored."
    )
    return Table("predictors", caption, data, shown)


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
            "Unreliable: networks were trained for too few steps to learn their own labels. "
            "Points that a method asks for are harder than random ones, so that it looks worse "
            f"than it is. Fitted in the worst round: {', '.join(names)}."
        )
    return notes


def _unfitted(experiment: Experiment) -> dict[str, float]:
    """The lowest accuracy on training labels of each method, for methods where it is too low."""
    smallest = {
        method: min(
            1.0 if record.fitted_share is None else record.fitted_share
            for run in experiment.of(method)
            for record in run.rounds
        )
        for method in experiment.methods
    }
    return {method: share for method, share in smallest.items() if share < FITTED}


def learning_curves(experiment: Experiment, band: bool = True, paper: bool = False) -> Figure:
    """Mean accuracy by number of labels, one line per method.

    Args:
        experiment: The runs to show.
        band: Whether to show one standard deviation around the mean.
        paper: Whether to show the paper's curves behind ours.
    """
    curves = []
    for method in experiment.methods:
        deviation = experiment.deviation_curve(method).fillna(0) if band else None
        curves.append(_in_percent(method, experiment.mean_curve(method), deviation))
    behind = partial(_draw_paper, experiment=experiment) if paper else None
    return curve_figure(experiment.title, "test accuracy (%)", curves, behind=behind)


def _in_percent(method: str, mean: pd.Series, spread: pd.Series | None) -> Curve:
    return Curve(method, 100 * mean, None if spread is None else 100 * spread)


def _draw_paper(axes: Axes, experiment: Experiment) -> None:
    for method, curve in paper_curves(experiment).groupby("method"):
        colour = look(str(method)).colour
        axes.plot(
            curve["labels"], 100 * curve["accuracy"], color=colour, lw=0.8, alpha=0.7, marker="o",
            ms=4, mfc="none", mew=0.8,
        )  # fmt: skip


def gain_curves(experiment: Experiment) -> Figure:
    """Accuracy minus the accuracy of Random with the same seed, with one standard error."""
    baseline = experiment.accuracy[BASELINE]
    curves = [Curve(BASELINE, pd.Series(0.0, baseline.dropna().index[[0, -1]]))]
    for method in experiment.methods:
        if method == BASELINE:
            continue
        gains = (experiment.accuracy[method] - baseline).dropna(axis=1, how="all").dropna()
        error = gains.sem(axis=1) if gains.shape[1] > 1 else None
        curves.append(_in_percent(method, gains.mean(axis=1), error))
    return curve_figure(experiment.title, "gain over Random (points)", curves, height=3.6)


def paper_curves(experiment: Experiment) -> pd.DataFrame:
    """The paper's accuracies, for our methods and up to our budget; may be empty."""
    printed = accuracies()
    return printed[
        (printed["table"] == experiment.paper)
        & printed["method"].isin(experiment.methods)
        & (printed["labels"] <= experiment.accuracy.index[-1])
    ]


def beside_paper(experiment: Experiment) -> Table | None:
    """The paper's accuracies at its budgets, and ours for the method and for its network.

    None if the paper has no table for this experiment.
    """
    printed = paper_curves(experiment)
    printed = printed[printed["labels"].isin(experiment.accuracy.index)]
    by_network = experiment.measure("network_accuracy")
    rows, shown = [], []
    for method in experiment.methods:
        theirs = printed[printed["method"] == method].set_index("labels")
        mean, deviation = experiment.mean_curve(method), experiment.deviation_curve(method)
        network = experiment.mean_curve(method, by_network)
        theirs = theirs[theirs.index.isin(mean.index)]
        if theirs.empty:
            continue
        lines: dict[str, dict[str, str]] = {
            "paper": {}, "by the method": {}, "difference": {}, "by the network": {},
            "difference, by the network": {},
        }  # fmt: skip
        for labels, line in theirs.iterrows():
            difference, of_network = mean[labels] - line["accuracy"], network[labels]
            rows.append({
                "method": method, "labels": labels, "seeds": len(experiment.of(method)),
                "accuracy": mean[labels], "deviation": deviation[labels],
                "paper_accuracy": line["accuracy"], "paper_deviation": line["deviation"],
                "difference": difference, "network_accuracy": of_network,
                "network_difference": of_network - line["accuracy"],
            })  # fmt: skip
            at = count(float(str(labels)))
            lines["paper"][at] = percent(line["accuracy"])
            lines["by the method"][at] = percent(mean[labels])
            lines["difference"][at] = points(difference)
            lines["by the network"][at] = percent(of_network)
            lines["difference, by the network"][at] = points(of_network - line["accuracy"])
        shown += [{"method": title(method), "": who, **cells} for who, cells in lines.items()]
    if not rows:
        return None
    caption = (
        "Mean accuracy in percent by number of labels: the paper's (five runs), and ours by the "
        "method and by its network; differences to the paper in percentage points."
    )
    return Table("paper", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""), words=2)
