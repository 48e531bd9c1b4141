"""Style of figures: colours, labels beside lines, and SVG for light and dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.isotonic import isotonic_regression

from spinal.report.names import is_default, split_name, title

# Colours on a light page, and the same hues on a dark one. The first seven, for the methods of the
# paper, can be distinguished by colour-blind readers (after Okabe and Ito, with colours that are
# too pale for text made darker). Lines are labelled directly, without a legend.
_COLOURS = {
    "spn-cnn": ("#0072b2", "#56b4e9"),
    "mc-dropout": ("#d55e00", "#ff8f4a"),
    "deterministic": ("#009e73", "#35cfa2"),
    "bayesian-batch": ("#c0669a", "#ea9fca"),
    "batchbald": ("#b07900", "#e6b422"),
    "spn-batchbald": ("#332288", "#9a92f0"),
    "random": ("#6e6e6e", "#a6a6a6"),
    "ensemble": ("#8b5a2b", "#cf9f70"),
    "spn-ensemble": ("#6a3d9a", "#b79ae0"),
    "badge": ("#882255", "#d9709f"),
    "k-center": ("#7f7f1f", "#c8c85c"),
    "typiclust": ("#2a8c86", "#72d3c4"),
    "spn-variance": ("#5b7fb5", "#8fb8e6"),
}
_OTHER = ("#444444", "#cccccc")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))

#: Shades for the phases of a round, from first to last.
SHADES = ("#1b4f72", "#2e86c1", "#85c1e9", "#f5b041", "#ca6f1e", "#7b7d7d")
#: The end of a line: its method, x and y.
End = tuple[str, float, float]

INK, GRID = "#000000", "#8080803f"

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "spinal",
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Look:
    """The colour of a method and the dashes of an acquisition function."""

    colour: str
    dashes: Any


def look(run_name: str, among: Sequence[str] = ()) -> Look:
    """The line style of a run. A method has the same colour in all figures.

    The method's default acquisition function has a solid line. Others have dashes, which depend on
    their position ``among`` the runs in the figure.
    """
    method, _ = split_name(run_name)
    colour = _COLOURS.get(method, _OTHER)[0]
    if is_default(run_name):
        return Look(colour, _DASHES[0])
    others = [r for r in among if split_name(r)[0] == method and not is_default(r)] or [run_name]
    return Look(colour, _DASHES[1:][others.index(run_name) % (len(_DASHES) - 1)])


def new_figure(width: float = 7.2, height: float = 4.4) -> Figure:
    """An empty figure; sizes are in inches. Draw in it within ``mpl.rc_context(STYLE)``."""
    return Figure(figsize=(width, height), layout="constrained")


def label_ends(axes: Axes, ends: Sequence[End], size: float = 10) -> None:
    """Write the name of each method beside the end of its line, without overlaps.

    Names are moved as little as possible (least squares) so that they are a line apart and inside
    the axes. A thin line leads to a name that was moved. Call this after drawing everything else.

    Args:
        axes: Axes with their final limits and size.
        ends: The end of each line.
        size: Font size in points.
    """
    if not ends:
        return
    low, high = axes.get_ylim()
    height = axes.get_position().height * axes.get_figure().get_figheight() * 72  # type: ignore[union-attr]
    gap = (high - low) * 1.3 * size / height
    ranked = sorted(ends, key=lambda end: end[2])
    steps = gap * np.arange(len(ranked))
    heights = np.array([y for _, _, y in ranked])
    room = max(high - steps[-1], low)
    places = isotonic_regression(heights - steps, y_min=low, y_max=room) + steps
    far = np.abs(places - heights) > gap / 3
    for (method, x, y), place, moved in zip(ranked, places, far, strict=True):
        colour = look(method).colour
        axes.annotate(
            title(method), (x, y), textcoords="offset points",
            xytext=(12 if far.any() else 6, (place - y) / (high - low) * height),
            color=colour, va="center", fontsize=size,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 2,
                        "relpos": (0, 0.5)} if moved else None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of a figure.

    Attributes:
        method: Name of the run.
        mean: Values by number of labels.
        spread: Half the width of the band around the line; None for no band.
    """

    method: str
    mean: pd.Series
    spread: pd.Series | None = None


def draw_curves(axes: Axes, curves: Sequence[Curve], width: float = 1.8) -> list[End]:
    """Draw lines with their bands; return where they end, for `label_ends`."""
    ends = []
    methods = [curve.method for curve in curves]
    for curve in curves:
        mean, style = curve.mean, look(curve.method, methods)
        if mean.empty:
            continue
        axes.plot(mean.index, mean, color=style.colour, ls=style.dashes, lw=width)
        if curve.spread is not None:
            low, high = mean - curve.spread, mean + curve.spread
            axes.fill_between(mean.index, low, high, color=style.colour, alpha=0.15, lw=0)
        ends.append((curve.method, float(mean.index[-1]), float(mean.iloc[-1])))
    axes.set_xlabel("labels")
    return ends


def curve_figure(
    title: str,
    ylabel: str,
    curves: Sequence[Curve],
    *,
    height: float = 4.4,
    top: float | None = None,
    behind: Callable[[Axes], None] | None = None,
) -> Figure:
    """A figure of lines over the number of labels, each named at its end.

    Args:
        title: Title of the figure.
        ylabel: Label of the vertical axis.
        curves: The lines.
        height: Height of the figure in inches.
        top: Upper limit of the vertical axis; None for an automatic one.
        behind: Draws the background, before the lines.
    """
    with mpl.rc_context(STYLE):
        figure = new_figure(height=height)
        axes = figure.subplots()
        if behind is not None:
            behind(axes)
        ends = draw_curves(axes, curves)
        if top is not None:
            axes.set_ylim(top=top)
        axes.set_ylabel(ylabel)
        axes.set_title(title, loc="left")
        figure.draw_without_rendering()  # positions of names depend on the layout
        label_ends(axes, ends)
    return figure


def to_svg(figure: Figure) -> str:
    """The figure as SVG, without background and with text as text; reproducible."""
    file = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    return "\n".join(line.rstrip() for line in text[text.index("<svg") :].splitlines()) + "\n"


def inline_svg(svg: str, name: str, description: str) -> str:
    """SVG for use inside a page, with unique ids and with colours that the page can change.

    Black becomes the text colour of the page; colours of methods become variables, see `variables`.
    """
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    svg = svg.replace(INK, "currentColor")
    for light, _ in (*_COLOURS.values(), _OTHER):
        svg = svg.replace(light, f"var(--c{light[1:]})")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)


def variables(dark: bool) -> str:
    """The colours of methods as declarations of a style sheet."""
    pairs = (*_COLOURS.values(), _OTHER)
    return " ".join(f"--c{pair[0][1:]}: {pair[dark]};" for pair in pairs)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file; reproducible."""
    if path.suffix == ".svg":
        path.write_text(to_svg(figure), encoding="utf-8")
        return
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=150, metadata={"Software": None})
