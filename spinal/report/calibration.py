"""Calibration of probabilities: calibration error, likelihood, reliability diagrams."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinal.methods import CLASSIFIERS
from spinal.report.experiment import Experiment
from spinal.report.names import title
from spinal.report.numbers import count, decimal, percent
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import (
    INK,
    STYLE,
    Curve,
    End,
    draw_curves,
    label_ends,
    look,
    new_figure,
)
from spinal.runs.metrics import calibration_error

_COLUMNS = 4


def section(experiment: Experiment) -> Section | None:
    """Calibration over the budget and at its end; None if it was not stored."""
    if experiment.measure("ece").isna().all(axis=None):
        return None
    over_budget = Drawing(
        "calibration",
        "Expected calibration error (15 bins) and negative log-likelihood (nats per point) on the "
        "test set, of the posterior that each method predicts with: mean over seeds; lower is "
        "better.",
        _over_budget(experiment),
    )
    parts: list[Table | Drawing] = [over_budget]
    bins = reliability(experiment)
    if len(bins):
        last = count(experiment.labels[-1])
        caption = (
            f"Reliability at {last} labels, all seeds together: accuracy of the test points whose "
            "confidence lies in a bin, over their mean confidence. Larger dots hold more points; "
            "below the line is overconfident."
        )
        parts.append(Drawing("reliability", caption, _diagrams(bins)))
    parts.append(_table(experiment))
    shares = _shares(experiment)
    if shares is not None:
        parts.append(shares)
    return Section("Calibration", (), parts)


def _over_budget(experiment: Experiment) -> Figure:
    with mpl.rc_context(STYLE):
        figure = new_figure(9.6, 3.8)
        panels = figure.subplots(1, 2)
        ends = [
            _curves(axes, experiment, name)
            for axes, name in zip(panels, ("ece", "nll"), strict=True)
        ]
        panels[0].set_ylabel("calibration error")
        panels[1].set_ylabel("negative log-likelihood")
        panels[0].set_title(experiment.title, loc="left")
        figure.draw_without_rendering()
        for axes, of_axes in zip(panels, ends, strict=True):
            label_ends(axes, of_axes, size=9)
    return figure


def _curves(axes: Axes, experiment: Experiment, name: str) -> list[End]:
    measured = experiment.measure(name)
    curves = [Curve(m, experiment.mean_curve(m, measured)) for m in experiment.methods]
    ends = draw_curves(axes, curves, width=1.5)
    axes.set_ylim(bottom=0)
    return ends


def reliability(experiment: Experiment) -> dict[str, dict[str, np.ndarray]]:
    """Bins of each method at the last budget, summed over its seeds, as far as they were stored."""
    bins_by_method = {}
    for method in experiment.methods:
        records = [run.at(int(experiment.labels[-1])) for run in experiment.of(method)]
        stored = [r.reliability for r in records if r.reliability is not None]
        if stored:
            bins_by_method[method] = {
                name: np.sum([bins[name] for bins in stored], axis=0)
                for name in ("count", "right", "confidence")
            }
    return bins_by_method


def _diagrams(bins: dict[str, dict[str, np.ndarray]]) -> Figure:
    """One panel per method."""
    columns = min(len(bins), _COLUMNS)
    lines = -(-len(bins) // columns)
    with mpl.rc_context(STYLE):
        figure = new_figure(2.4 * columns, 0.3 + 2.7 * lines)
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for axes in panels.flat[len(bins) :]:
            axes.set_visible(False)
        for i, (axes, (method, of_method)) in enumerate(
            zip(panels.flat, bins.items(), strict=False)
        ):
            occupied = of_method["count"] > 0
            n = of_method["count"][occupied]
            confidence, accuracy = (
                of_method["confidence"][occupied] / n,
                of_method["right"][occupied] / n,
            )
            colour = look(method).colour
            axes.plot([0, 1], [0, 1], color=INK, lw=0.8, alpha=0.5)
            axes.plot(confidence, accuracy, color=colour, lw=1.2)
            axes.scatter(
                confidence,
                accuracy,
                6 + 90 * n / n.sum(),
                color=colour,
                lw=0,
                zorder=3,
                clip_on=False,
            )
            axes.set_title(title(method), loc="left", color=colour)
            error = calibration_error(of_method)
            axes.text(
                0.97, 0.04, f"ECE {error:.3f}", ha="right", transform=axes.transAxes, fontsize=9
            )
            axes.set_aspect("equal")
            axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            if i + columns >= len(bins):
                axes.set_xlabel("confidence")
                axes.tick_params(labelbottom=True)
            if i % columns == 0:
                axes.set_ylabel("accuracy")
    return figure


def _table(experiment: Experiment) -> Table:
    names = {
        "ece": "ECE", "nll": "NLL", "network_ece": "network: ECE", "network_nll": "network: NLL",
        "logistic_ece": "logistic: ECE", "logistic_nll": "logistic: NLL",
    }  # fmt: skip
    rows = []
    for method in experiment.methods:
        row: dict[str, object] = {"method": method}
        for name in names:
            row[name] = experiment.measure(name).loc[experiment.labels[-1], method].mean()
        rows.append(row)
    data = pd.DataFrame(rows)
    shown = pd.DataFrame({"method": data["method"].map(title)})
    for name, heading in names.items():
        shown[heading] = data[name].map(decimal)
    shown = shown.loc[:, (shown != "").any()]  # earlier versions did not store all of them
    caption = (
        f"Calibration error and negative log-likelihood at {count(experiment.labels[-1])} labels, "
        "mean over seeds: of the posterior that the method predicts with, of the network's own "
        "softmax, and of logistic regression on its features, with the same labels."
    )
    return Table("calibration-end", caption, data, shown)


def _shares(experiment: Experiment) -> Table | None:
    """Weights of the classifiers that methods mixed at the end; None if they were not stored."""
    last, rows = int(experiment.labels[-1]), []
    for method in experiment.methods:
        stored = [run.at(last).shares for run in experiment.of(method)]
        shares = pd.DataFrame([s for s in stored if s is not None]).fillna(0.0).mean()
        if len(shares):
            rows.append({"method": method, **shares})
    if not rows:
        return None
    data = pd.DataFrame(rows)
    shown = pd.DataFrame({"method": data["method"].map(title)})
    for name in data.columns[1:]:
        shown[CLASSIFIERS.get(name, name)] = data[name].map(lambda share: percent(share, 0))
    caption = (
        f"Weights of the classifiers that predictions are mixed from, at {count(last)} labels, in "
        "percent, mean over seeds. They were chosen by held-out labels."
    )
    return Table("shares", caption, data, shown)
