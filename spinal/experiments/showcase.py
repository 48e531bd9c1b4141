"""Two abilities of an SPN that a softmax lacks: missing features, and densities of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from spinal.estimators import SPNClassifier

#: Shares of the features that are missing.
SHARES = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class Showcase:
    """Measurements on test digits.

    Attributes:
        accuracies: for each share of ``missing`` features, the accuracy of the SPN with missing
            features integrated out, and of SPN and softmax with mean imputation.
        digits: log-densities ``[N]`` of the SPN for the digits.
        noise: log-densities ``[N]`` for noise with the same pixel values, each pixel taken from
            another digit.
    """

    accuracies: pd.DataFrame
    digits: NDArray[np.float64]
    noise: NDArray[np.float64]


def compare(seed: int = 0) -> Showcase:
    """Train an SPN and a logistic regression on 1,000 digits; test them on the other 797.

    Args:
        seed: for the split, the fit, and which features are missing.
    """
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=1000, random_state=seed, stratify=y)
    spn = SPNClassifier(random_state=seed, dtype="float32").fit(X, y)
    softmax = LogisticRegression(max_iter=1000).fit(X / 16, y)
    rng = np.random.default_rng(seed)
    rows = []
    for share in SHARES:
        gone = rng.random(X_test.shape) < share
        imputed = np.where(gone, X.mean(0), X_test)
        rows.append({
            "missing": share,
            "SPN, marginalised": spn.score(np.where(gone, np.nan, X_test), y_test),
            "SPN, mean imputed": spn.score(imputed, y_test),
            "softmax, mean imputed": softmax.score(imputed / 16, y_test),
        })  # fmt: skip
    noise = spn.score_samples(rng.permuted(X_test, axis=0))
    return Showcase(pd.DataFrame(rows), spn.score_samples(X_test), noise)
