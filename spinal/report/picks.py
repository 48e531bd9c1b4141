"""The chosen points: balance of their classes, and the first images that were asked for."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spinal.report.experiment import Experiment
from spinal.report.names import title
from spinal.report.numbers import count, percent
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import INK, STYLE, Curve, curve_figure, look, new_figure
from spinal.runs import RoundRecord
from spinal.runs.asked import FIRST, Asked


def section(experiment: Experiment) -> Section | None:
    """Class balance, and the first images that were asked for; None if neither was stored."""
    seed = experiment.of(experiment.methods[0])[0].seed
    asked = _asked(experiment, seed)
    parts: list[Table | Drawing] = []
    balance = class_balance(experiment)
    if not balance.isna().all(axis=None):
        caption = (
            "Balance of the classes among the labelled points: entropy of their shares over that "
            "of equal shares, mean over seeds; 1 is perfectly balanced."
        )
        parts.append(Drawing("class-balance", caption, _balance_figure(experiment, balance)))
        classes = next(iter(asked.values())).classes if asked else None
        parts.append(_class_table(experiment, classes))
    if asked:
        caption = (
            f"The first {FIRST} images that each method asked for after the initial set, from left "
            f"to right, with their classes; seed {seed}."
        )
        parts.append(Drawing("asked-first", caption, contact_sheet(asked)))
    text = [] if asked else ["The images that were asked for first are not shown: none were kept."]
    return Section("Chosen points", text, parts) if parts else None


def _asked(experiment: Experiment, seed: int) -> dict[str, Asked]:
    """The first images that each method asked for, as far as they were stored."""
    loaded = {
        method: Asked.load(run.folder)
        for method in experiment.methods
        for run in experiment.of(method)
        if run.seed == seed
    }
    return {method: asked for method, asked in loaded.items() if asked is not None}


def class_balance(experiment: Experiment) -> pd.DataFrame:
    r"""Normalised entropy, :math:`-\sum_c s_c \log s_c / \log C`, of the shares of C classes.

    It has the layout of `Experiment.accuracy`; NaN if counts were not stored.
    """
    return experiment.tabulate(_balance)


def _balance(record: RoundRecord) -> float | None:
    if record.class_counts is None:
        return None
    counts_C = np.array(record.class_counts)
    shares = counts_C[counts_C > 0] / counts_C.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(len(counts_C)))


def _balance_figure(experiment: Experiment, balance: pd.DataFrame) -> Figure:
    curves = [Curve(m, experiment.mean_curve(m, balance)) for m in experiment.methods]
    return curve_figure(experiment.title, "class balance", curves, height=3.4, top=1)


def _class_table(experiment: Experiment, classes: tuple[str, ...] | None) -> Table:
    """Shares of the classes at the last budget."""
    labels = int(experiment.labels[-1])
    rows, shown = [], []
    for method in experiment.methods:
        records = [run.at(labels) for run in experiment.of(method)]
        counts = [r.class_counts for r in records if r.class_counts is not None]
        if not counts:
            continue
        mean = np.mean(counts, axis=0)
        names = classes or tuple(map(str, range(len(mean))))
        rows += [
            {"method": method, "class": name, "mean_count": value}
            for name, value in zip(names, mean, strict=True)
        ]
        shares = {n: percent(v, 1) for n, v in zip(names, mean / mean.sum(), strict=True)}
        shown.append({"method": title(method), **shares})
    caption = f"Shares of the classes among {count(labels)} labels, in percent, mean over seeds."
    return Table("classes", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""))


def contact_sheet(asked: dict[str, Asked]) -> Figure:
    """The first images that each method asked for, one row per method."""
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = new_figure(9.6, 0.66 * len(asked))
        panels = figure.subplots(len(asked), FIRST, squeeze=False)
        for line, (method, first) in zip(panels, asked.items(), strict=True):
            for axes in line:
                axes.set_axis_off()
            for axes, image, label in zip(line, first.images, first.labels, strict=False):
                axes.imshow(_displayed(image), interpolation="nearest")
                name = first.classes[label]
                axes.text(0.5, -0.08, name[:6], ha="center", va="top", fontsize=6, color=INK,
                          transform=axes.transAxes)  # fmt: skip
            line[0].text(-0.15, 0.5, title(method), ha="right", va="center", fontsize=9,
                         color=look(method).colour, transform=line[0].transAxes)  # fmt: skip
    return figure


def _displayed(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image [H, W, C] as RGB; grey images are inverted, dark on light."""
    if image.shape[-1] == 1:
        return np.repeat(255 - image, 3, axis=-1)
    return np.asarray(image)
