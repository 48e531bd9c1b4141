"""The figure and the table of `spinal demo-spn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from spinal.report.plots import STYLE, save

_SPN, _SOFTMAX, _NOISE = "#D55E00", "#0072B2", "#767676"
_STYLES: dict[str, dict[str, Any]] = {
    "SPN, marginalised": {"color": _SPN},
    "SPN, mean imputed": {"color": _SPN, "ls": ":"},
    "softmax, mean imputed": {"color": _SOFTMAX, "ls": "--"},
}


def write_showcase(
    accuracies: pd.DataFrame, digits: NDArray, noise: NDArray, folder: Path
) -> list[Path]:
    """Write ``spn.png`` and ``spn.csv`` into a folder.

    Args:
        accuracies: one row per share of ``missing`` features, one column per way to handle them.
        digits: log-densities ``[N]`` of digits.
        noise: log-densities ``[N]`` of noise.
        folder: created if it does not exist.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    picture, table = folder / "spn.png", folder / "spn.csv"
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_accuracies(left, accuracies)
        _draw_densities(right, digits, noise)
    save(figure, picture)
    accuracies.to_csv(table, index=False, float_format="%.4f")
    return [picture, table]


def _draw_accuracies(axes: Axes, accuracies: pd.DataFrame) -> None:
    missing = 100 * accuracies["missing"]
    for name, style in _STYLES.items():
        axes.plot(missing, 100 * accuracies[name], marker="o", ms=4, lw=1.8, label=name, **style)
    axes.set_xlabel("features missing (%)")
    axes.set_ylabel("test accuracy (%)")
    axes.set_xticks(missing.tolist())
    axes.legend(frameon=False)
    axes.set_title("Missing features are integrated out", loc="left")


def _draw_densities(axes: Axes, digits: NDArray, noise: NDArray) -> None:
    low, high = np.quantile(noise, 0.05), digits.max()
    bins = np.linspace(low, high, 50).tolist()
    for values, colour, name in (
        (noise, _NOISE, "each pixel from another digit"),
        (digits, _SPN, "digits not seen before"),
    ):
        axes.hist(np.clip(values, low, None), bins, color=colour, alpha=0.8, label=name)
    axes.set_xlabel("log p(z), nats (the first bar: all below)")
    axes.set_ylabel("images")
    axes.legend(frameon=False)
    truth = np.r_[np.ones(len(digits)), np.zeros(len(noise))]
    area = roc_auc_score(truth, np.r_[digits, noise])
    axes.set_title(f"A density tells digits from noise (AUROC {area:.2f})", loc="left")
