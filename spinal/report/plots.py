"""Learning curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by people who do not see red and green alike.
_PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B5A2B", "#7F3C8D"]
_GREY = "#767676"

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "svg.hashsalt": "spinal",
}


def colours(methods: list[str]) -> dict[str, str]:
    """A colour for each method, the same wherever the same methods are shown; Random is grey."""
    others = [m for m in sorted(methods) if m != "random"]
    table = {m: _PALETTE[i % len(_PALETTE)] for i, m in enumerate(others)}
    return {**table, "random": _GREY}


def learning_curves(runs: pd.DataFrame, protocol: str, title: str = "") -> Figure:
    """Mean accuracy over the labels, a line for each method, with a band of one deviation."""
    chosen = runs[runs["protocol"] == protocol]
    palette = colours(sorted(chosen["method"].unique()))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        axes = figure.subplots()
        ends = []
        for method, rounds in chosen.groupby("method", sort=True):
            by_label = rounds.groupby("labels")["accuracy"]
            mean, deviation = 100 * by_label.mean(), 100 * by_label.std().fillna(0)
            colour = palette[str(method)]
            axes.plot(mean.index, mean, color=colour, lw=1.8)
            low, high = mean - deviation, mean + deviation
            axes.fill_between(mean.index, low, high, color=colour, alpha=0.12, lw=0)
            ends.append((float(mean.iloc[-1]), str(method), colour, float(mean.index[-1])))
        _label_ends(axes, ends)
        seeds = chosen["seed"].nunique()
        axes.set_xlabel("labels")
        axes.set_ylabel("test accuracy (%)")
        axes.set_title(f"{title or protocol}: mean and deviation of {seeds} seeds", loc="left")
    return figure


def _label_ends(axes: Axes, ends: list[tuple[float, str, str, float]]) -> None:
    """Write each name beside the end of its line, apart from the others."""
    low, high = axes.get_ylim()
    gap = (high - low) / 18
    at = -np.inf
    for value, name, colour, x in sorted(ends):
        at = max(value, at + gap)
        axes.annotate(
            name, (x, at), xytext=(6, 0), textcoords="offset points", color=colour, va="center",
            annotation_clip=False,
        )  # fmt: skip


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the same figure gives the same file."""
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=150, metadata=metadata)
