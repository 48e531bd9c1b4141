"""The report of `spinal.experiments.uncertainty`: densities of entropy, and how well it detects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from spinal.data.table import PUBLISHED
from spinal.report.measurements import StoredSeed, origin, stored_seeds, write_pages
from spinal.report.names import title
from spinal.report.numbers import count, decimal, percent, with_deviation
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import INK, STYLE, look, new_figure
from spinal.report.statistics import deviation
from spinal.runs.records import UNCERTAINTY_METHODS as METHODS

#: Standard deviation of the kernel that smooths densities, in nats.
BANDWIDTH = 0.04

_SCORES = {
    "entropy": "entropy",
    "margin": "margin",
    "sharpened-entropy": "sharpened entropy",
    "log-density": "log-density",
    "mutual-information": "mutual information",
}
_DETECTION = {
    "auroc": "AUROC", "aupr_outside": "AUPR, outside", "aupr_inside": "AUPR, inside",
    "fpr95": "FPR at 95 % TPR",
}  # fmt: skip


def write_uncertainty_report(folder: str | Path, out: str | Path) -> list[Path]:
    """Write a page on all finished seeds under ``folder``; return the paths of its files.

    The same seeds give the same files, byte for byte.
    """
    chapters = [
        (name.replace("@", "-"), seeds[0].title, _sections(seeds))
        for name, seeds in finished(folder).items()
    ]
    return write_pages(chapters, "Uncertainty alone", Path(out))


def finished(folder: str | Path) -> dict[str, list[StoredSeed]]:
    """The finished seeds under ``folder``, by pair."""
    return stored_seeds(folder, len(METHODS))


def _sections(seeds: Sequence[StoredSeed]) -> list[Section]:
    inside, outside = _names(seeds[0])
    labels = seeds[0].settings["experiment"].get("labels")
    learned = f"{count(labels)} random labels" if labels else "all training labels"
    text = [
        f"Trained on {inside} with {learned}: one network for each seed, which all methods share; "
        "the ensemble trains its other members. Then the entropy of the predictions, in nats, on "
        f"test points of {inside} (inside) and of {outside} (outside).",
        "The entropy is that of the averaged prediction where there are samples (MC Dropout, "
        "Ensemble), and of the SPN's exact posterior.",
        "The paper shows densities for SPN-CNN, MC Dropout and Deterministic, trained on all of "
        "SVHN, against CIFAR-10. Ensembles, other pairs and all numbers here are not the paper's.",
    ]
    return [
        Section("Uncertainty on both datasets", text, [_densities(seeds), detection(seeds)]),
        Section("ROC curves", [], [_roc(seeds)]),
        Section(f"Predictions on {inside}", [], [predictions(seeds)]),
        origin(seeds, f"spinal uncertainty-alone {seeds[0].experiment}"),
    ]


def detection(seeds: Sequence[StoredSeed]) -> Table:
    """How well each score of each method separates outside from inside."""
    rows, shown = [], []
    for method in METHODS:
        for score, described in _SCORES.items():
            if score not in _part(seeds[0], method)["scores"]:
                continue
            row: dict[str, Any] = {"method": method, "score": score, "seeds": len(seeds)}
            cells = {"method": title(method), "score": described}
            for measure, heading in _DETECTION.items():
                values = _values(seeds, method, lambda p: p["scores"][score][measure])  # noqa: B023
                row |= {measure: values.mean(), f"{measure}_sd": deviation(values)}
                cells[heading] = with_deviation(values.mean(), deviation(values))
            rows.append(row)
            shown.append(cells)
    inside, outside = _names(seeds[0])
    n = {where: sum(_histogram(seeds[:1], METHODS[0], where)) for where in ("inside", "outside")}
    share = n["outside"] / sum(n.values())
    caption = (
        f"How well a score separates {outside} (outside, {count(n['outside'])} points) from "
        f"{inside} (inside, {count(n['inside'])}), in percent; {_over(seeds)}. Outside is the "
        "positive class, except in the second AUPR (average precision). FPR at 95 % TPR: of the "
        "points inside, the share that is called outside where 95 % of those outside are; lower is "
        f"better. At random: AUROC 50, AUPR {percent(share, 0)} and {percent(1 - share, 0)}, FPR "
        "95. A high entropy or mutual information is taken for outside, and a low density."
    )
    return Table("detection", caption, pd.DataFrame(rows), pd.DataFrame(shown), words=2)


def predictions(seeds: Sequence[StoredSeed]) -> Table:
    """Quality of the predictions inside, their cost, and the mean entropies."""
    getters: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
        "accuracy": ("accuracy, %", lambda p: p["accuracy"]),
        "ece": ("ECE", lambda p: p["ece"]),
        "nll": ("NLL", lambda p: p["nll"]),
        "entropy_inside": ("mean entropy inside", lambda p: p["entropy"]["inside"]["mean"]),
        "entropy_outside": ("outside", lambda p: p["entropy"]["outside"]["mean"]),
        "seconds_fit": ("s to fit", lambda p: p["seconds"]["fit"]),
        "seconds_predict": ("s to predict", lambda p: p["seconds"]["predict"]),
    }
    rows, shown = [], []
    for method in METHODS:
        row: dict[str, Any] = {"method": method, "seeds": len(seeds)}
        cells = {"method": title(method)}
        for name, (heading, get) in getters.items():
            values = _values(seeds, method, get)
            mean, spread = values.mean(), deviation(values)
            row |= {name: mean, f"{name}_sd": spread}
            if name == "accuracy":
                cells[heading] = with_deviation(mean, spread)
            elif name.startswith("seconds"):
                cells[heading] = decimal(mean, 1)
            else:
                cells[heading] = decimal(mean) + (
                    "" if np.isnan(spread) else f" ± {decimal(spread)}"
                )
        rows.append(row)
        shown.append(cells)
    caption = (
        f"Predictions on the test points inside; {_over(seeds)}. ECE: expected calibration error, "
        "15 bins. NLL: negative log-likelihood, nats per point. Entropies in nats. Seconds: of one "
        "core, to fit what a method adds to the shared network (the other members of the "
        "ensemble), and to predict all test points, inside and outside."
    )
    return Table("predictions", caption, pd.DataFrame(rows), pd.DataFrame(shown))


def _densities(seeds: Sequence[StoredSeed]) -> Drawing:
    inside, outside = _names(seeds[0])
    caption = (
        f"Densities of the entropy on test points of {inside} (dark line) and of {outside} "
        f"(coloured), {_together(seeds)}, smoothed by a normal kernel of {BANDWIDTH} nats. "
        "The axes are the same for all methods."
    )
    with mpl.rc_context(STYLE):
        figure = new_figure(9.6, 3.2)
        panels = figure.subplots(1, len(METHODS), sharex=True, sharey=True)
        for axes, method in zip(panels, METHODS, strict=True):
            _density_panel(axes, seeds, method, named=axes is panels[0])
        room = 1.12 * panels[0].get_ylim()[1]  # for names
        panels[0].set(ylabel="density", ylim=(0, room))
        n_classes = seeds[0].parts[0]["classes"]
        panels[0].set(xlim=(0, np.log(n_classes)), xticks=range(int(np.log(n_classes)) + 1))
        figure.supxlabel("entropy (nats)", fontsize=10)
    return Drawing("densities", caption, figure)


def _density_panel(axes: Axes, seeds: Sequence[StoredSeed], method: str, named: bool) -> None:
    """Both densities of a method, labelled if ``named``."""
    colour = look(method).colour
    x, inside = _density(_histogram(seeds, method, "inside"), seeds[0])
    _, outside = _density(_histogram(seeds, method, "outside"), seeds[0])
    axes.fill_between(x, outside, color=colour, alpha=0.25, lw=0)
    axes.plot(x, outside, color=colour, lw=1.6)
    axes.plot(x, inside, color=INK, lw=1.2)
    area = _values(seeds, method, lambda part: part["scores"]["entropy"]["auroc"]).mean()
    axes.set_title(title(method), loc="left", color=colour)
    axes.set_title(f"AUROC {area:.3f}", loc="right", fontsize=9)
    if named:
        # Label each where it is farthest above the other.
        highest = ((inside - outside).argmax(), (outside - inside).argmax())
        for name, density, at, ink in zip(
            _names(seeds[0]), (inside, outside), highest, (INK, colour), strict=True
        ):
            side = "left" if at < len(x) / 2 else "right"
            axes.annotate(
                name, (x[at], density[at]), (4 if side == "left" else -4, 3), ha=side, color=ink,
                textcoords="offset points", fontsize=9,
            )  # fmt: skip


def _density(counts: NDArray, measurement: StoredSeed) -> tuple[NDArray, NDArray]:
    """Entropies and their density, from a normal kernel that is reflected at both ends."""
    n_classes = measurement.parts[0]["classes"]
    width = np.log(n_classes) / len(counts)
    smooth = gaussian_filter1d(counts.astype(float), BANDWIDTH / width, mode="reflect")
    return width * (np.arange(len(counts)) + 0.5), smooth / (counts.sum() * width)


def _roc(seeds: Sequence[StoredSeed]) -> Drawing:
    inside, outside = _names(seeds[0])
    caption = (
        f"Receiver operating characteristic, {_mean_over(seeds)}: the share of {outside} that is "
        f"called outside over the share of {inside} that is, at every threshold of the entropy "
        "(lines) and of the SPN's log-density (dashes). On the diagonal, a score says nothing."
    )
    with mpl.rc_context(STYLE):
        figure = new_figure(7.2, 4.0)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=INK, lw=0.8, alpha=0.5)
        for place, (method, score, dashes, name) in enumerate(_curves()):
            curves = [_part(seed, method)["scores"][score]["roc"] for seed in seeds]
            areas = [_part(seed, method)["scores"][score]["auroc"] for seed in seeds]
            colour = look(method).colour
            rates = np.linspace(0, 1, len(curves[0]))  # of points inside, as they were stored
            axes.plot(rates, np.mean(curves, axis=0), color=colour, ls=dashes, lw=1.6)
            text = f"{np.mean(areas):.3f}  {name}"
            axes.text(1.04, 0.6 - 0.08 * place, text, color=colour, fontsize=9)
        axes.text(1.04, 0.69, "area under the curve", fontsize=9)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=f"{inside} called outside")
        axes.set_ylabel(f"{outside} called outside")
    return Drawing("roc", caption, figure)


def _curves() -> list[tuple[str, str, Any, str]]:
    """Method, score, dashes and name of each curve."""
    entropies = [(method, "entropy", "-", title(method)) for method in METHODS]
    density = ("spn-cnn", "log-density", (0, (5, 2)), f"{title('spn-cnn')}, log-density")
    return [entropies[0], density, *entropies[1:]]


def _part(measurement: StoredSeed, method: str) -> dict[str, Any]:
    return next(part for part in measurement.parts if part["method"] == method)


def _values(
    seeds: Sequence[StoredSeed], method: str, get: Callable[[dict[str, Any]], float]
) -> NDArray[np.float64]:
    """``get`` of the part of each seed, as an array."""
    return np.array([get(_part(seed, method)) for seed in seeds])


def _histogram(seeds: Sequence[StoredSeed], method: str, where: str) -> NDArray:
    counts = [_part(seed, method)["entropy"][where]["histogram"] for seed in seeds]
    return np.sum(counts, axis=0)


def _names(measurement: StoredSeed) -> tuple[str, str]:
    """Titles of the datasets inside and outside."""
    names = (measurement.settings["experiment"][key] for key in ("dataset", "outside"))
    inside, outside = (
        PUBLISHED[name].title.partition(",")[0] if name in PUBLISHED else name for name in names
    )
    return inside, outside


def _seeds(seeds: Sequence[StoredSeed]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"


def _together(seeds: Sequence[StoredSeed]) -> str:
    return f"all {_seeds(seeds)} together" if len(seeds) > 1 else "one seed"


def _over(seeds: Sequence[StoredSeed]) -> str:
    return f"mean and standard deviation over {_seeds(seeds)}" if len(seeds) > 1 else "of one seed"


def _mean_over(seeds: Sequence[StoredSeed]) -> str:
    return f"mean over {_seeds(seeds)}" if len(seeds) > 1 else "one seed"
