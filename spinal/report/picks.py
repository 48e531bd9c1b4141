"""What was picked: how balanced the classes are, and the images that were asked for first."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spinal.data import Dataset, load_dataset
from spinal.errors import SpinalError
from spinal.report.experiment import Experiment
from spinal.report.names import title
from spinal.report.numbers import count, percent
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import INK, STYLE, label_ends, look, new_figure

FIRST = 20


def section(experiment: Experiment, data_dir: str | Path | None = None) -> Section | None:
    """Class balance, and a contact sheet if the dataset is at hand; None if there is neither."""
    dataset, problem = _dataset(experiment, data_dir)
    parts: list[Table | Drawing] = []
    balance = class_balance(experiment)
    if not balance.isna().all(axis=None):
        caption = (
            "Balance of the classes among the labelled points: entropy of their shares over that "
            "of equal shares, mean over seeds; 1 is perfectly balanced."
        )
        parts.append(Drawing("class-balance", caption, _balance_figure(experiment, balance)))
        parts.append(_class_table(experiment, dataset.classes if dataset is not None else None))
    text = []
    if dataset is not None:
        seed = experiment.of(experiment.methods[0])[0].seed
        caption = (
            f"The first {FIRST} images that each method asked for after the initial set, from left "
            f"to right, with their classes; seed {seed}."
        )
        sheet = contact_sheet(experiment, dataset, seed)
        if sheet is not None:
            parts.append(Drawing("asked-first", caption, sheet))
    elif problem:
        text.append(f"The images that were asked for first are not shown: {problem}.")
    return Section("What was picked", text, parts) if parts or text else None


def _dataset(experiment: Experiment, data_dir: str | Path | None) -> tuple[Dataset | None, str]:
    """The dataset, if it is at hand; why not, otherwise. Nothing is downloaded."""
    name = experiment.protocol.get("dataset")
    if name is None:
        return None, ""
    try:
        return load_dataset(name, data_dir, download=False), ""
    except SpinalError:
        return None, f"the dataset {name} is not at hand (`spinal datasets` says where to put it)"


def class_balance(experiment: Experiment) -> pd.DataFrame:
    r"""Normalised entropy, :math:`-\sum_c s_c \log s_c / \log C`, of the shares of C classes.

    Arranged as `Experiment.accuracy` is; NaN where counts were not stored.
    """
    columns = {}
    for method in experiment.methods:
        for run in experiment.of(method):
            lines = [line for line in run.rounds if "class_counts" in line]
            columns[method, run.seed] = pd.Series(
                {line["labels"]: _balance(np.array(line["class_counts"])) for line in lines},
                dtype=float,
            )
    return pd.DataFrame(columns).rename_axis(columns=["method", "seed"]).sort_index()


def _balance(counts_C: NDArray[np.int64]) -> float:
    shares = counts_C[counts_C > 0] / counts_C.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(len(counts_C)))


def _balance_figure(experiment: Experiment, balance: pd.DataFrame) -> Figure:
    with mpl.rc_context(STYLE):
        figure = new_figure(height=3.4)
        axes = figure.subplots()
        ends = []
        for method in experiment.methods:
            mean, style = experiment.mean_curve(method, balance), look(method, experiment.methods)
            if mean.empty:
                continue
            axes.plot(mean.index, mean, color=style.colour, ls=style.dashes)
            ends.append((method, float(mean.index[-1]), float(mean.iloc[-1])))
        axes.set_ylim(top=1)
        axes.set_xlabel("labels")
        axes.set_ylabel("class balance")
        axes.set_title(experiment.title, loc="left")
        figure.draw_without_rendering()
        label_ends(axes, ends)
    return figure


def _class_table(experiment: Experiment, classes: tuple[str, ...] | None) -> Table:
    """Shares of the classes at the last budget."""
    labels = int(experiment.labels[-1])
    rows, shown = [], []
    for method in experiment.methods:
        lines = [run.at(labels) for run in experiment.of(method)]
        counts = [line["class_counts"] for line in lines if "class_counts" in line]
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


def contact_sheet(experiment: Experiment, dataset: Dataset, seed: int) -> Figure | None:
    """The first images that each method asked for, a line of them for each; None without picks."""
    asked: dict[str, list[int]] = {}
    for method in experiment.methods:
        for run in experiment.of(method):
            picks = [p for line in run.rounds for p in line.get("picks", [])][:FIRST]
            if run.seed == seed and picks and max(picks) < len(dataset.train_labels):
                asked[method] = picks
    if not asked:
        return None
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = new_figure(9.6, 0.66 * len(asked))
        panels = figure.subplots(len(asked), FIRST, squeeze=False)
        for line, (method, picks) in zip(panels, asked.items(), strict=True):
            for axes in line:
                axes.set_axis_off()
            for axes, index in zip(line, picks, strict=False):
                axes.imshow(_displayed(dataset.train_images[index]), interpolation="nearest")
                name = dataset.classes[dataset.train_labels[index]]
                axes.text(0.5, -0.08, name[:6], ha="center", va="top", fontsize=6, color=INK,
                          transform=axes.transAxes)  # fmt: skip
            line[0].text(-0.15, 0.5, title(method), ha="right", va="center", fontsize=9,
                         color=look(method).colour, transform=line[0].transAxes)  # fmt: skip
    return figure


def _displayed(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image [H, W, C] as RGB; grey ones dark on light, as on paper."""
    if image.shape[-1] == 1:
        return np.repeat(255 - image, 3, axis=-1)
    return np.asarray(image)
