"""What an SPN can do that a softmax cannot: take missing features, and tell what is unusual."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from spinal.estimators import SPNClassifier
from spinal.report.plots import STYLE, save

SHARES = (0.0, 0.25, 0.5, 0.75)
_SPN, _SOFTMAX, _NOISE = "#D55E00", "#0072B2", "#767676"


def showcase(out: Path, seed: int = 0) -> tuple[pd.DataFrame, list[Path]]:
    """Train on 1,000 digits, test on the other 797; write a picture and a table.

    Features go missing at random: the SPN integrates them out, exactly; the softmax of a logistic
    regression, and the SPN once more, get the mean of the training set in their place. And the
    density of the SPN for digits that it has not seen, and for noise with the same pixel values:
    each pixel taken from another digit.
    """
    X, y = load_digits(return_X_y=True)
    X, held, y, truth = train_test_split(X, y, train_size=1000, random_state=seed, stratify=y)
    spn = SPNClassifier(random_state=seed, dtype="float32").fit(X, y)
    softmax = LogisticRegression(max_iter=1000).fit(X / 16, y)
    rng = np.random.default_rng(seed)
    rows = []
    for share in SHARES:
        gone = rng.random(held.shape) < share
        imputed = np.where(gone, X.mean(0), held)
        rows.append({
            "missing": share,
            "SPN, marginalised": spn.score(np.where(gone, np.nan, held), truth),
            "SPN, mean imputed": spn.score(imputed, truth),
            "softmax, mean imputed": softmax.score(imputed / 16, truth),
        })  # fmt: skip
    table = pd.DataFrame(rows)
    usual = spn.score_samples(held)
    noise = spn.score_samples(rng.permuted(held, axis=0))
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "spn.png"
    save(_figure(table, usual, noise), picture)
    table.to_csv(out / "spn.csv", index=False, float_format="%.4f")
    return table, [picture, out / "spn.csv"]


def _figure(table: pd.DataFrame, usual: NDArray, noise: NDArray) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        styles = {
            "SPN, marginalised": {"color": _SPN},
            "SPN, mean imputed": {"color": _SPN, "ls": ":"},
            "softmax, mean imputed": {"color": _SOFTMAX, "ls": "--"},
        }
        for name, style in styles.items():
            x, accuracy = 100 * table["missing"], 100 * table[name]
            left.plot(x, accuracy, marker="o", ms=4, lw=1.8, label=name, **style)
        left.set_xlabel("features missing (%)")
        left.set_ylabel("test accuracy (%)")
        left.set_xticks([100 * share for share in SHARES])
        left.legend(frameon=False)
        left.set_title("Missing features are integrated out", loc="left")
        low, high = np.quantile(noise, 0.05), usual.max()
        bins = np.linspace(low, high, 50).tolist()
        for values, colour, name in (
            (noise, _NOISE, "each pixel from another digit"),
            (usual, _SPN, "digits not seen before"),
        ):
            right.hist(np.clip(values, low, None), bins, color=colour, alpha=0.8, label=name)
        right.set_xlabel("log p(z), nats (the first bar: all below)")
        right.set_ylabel("images")
        right.legend(frameon=False)
        truth = np.r_[np.ones(len(usual)), np.zeros(len(noise))]
        area = roc_auc_score(truth, np.r_[usual, noise])
        right.set_title(f"A density tells digits from noise (AUROC {area:.2f})", loc="left")
    return figure
