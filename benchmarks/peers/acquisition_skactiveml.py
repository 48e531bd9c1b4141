"""BatchBALD, k-center and BADGE by scikit-activeml."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import acquisition_data as data
import numpy as np
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import Badge, batch_bald, k_greedy_center

VERSIONS = {"scikit-activeml": version("scikit-activeml")}


def batchbald(
    n: int, k: int, c: int, b: int, labellings: int, doubt: float
) -> Callable[[], dict[str, Any]]:
    """The function beneath its query strategy."""
    probs_K_N_C = np.exp(data.log_probs(n, k, c, doubt).astype(np.float64)).swapaxes(0, 1)

    def run() -> dict[str, Any]:
        utilities = batch_bald(probs_K_N_C.copy(), b, labellings, random_state=0)
        picks = np.nanargmax(utilities, 1)
        return {"picks": picks.tolist(), "scores": np.nanmax(utilities, 1).tolist()}

    return run


def k_center(n: int, d: int, b: int) -> Callable[[], dict[str, Any]]:
    """The first point being labelled; positions are those among the others."""
    features = data.vectors(n + 1, d)
    labels = np.full(n + 1, np.nan)
    labels[0] = 0

    def run() -> dict[str, Any]:
        picks, _ = k_greedy_center(features, labels, b, random_state=0)
        return {"picks": (np.asarray(picks) - 1).tolist()}

    return run


class _Known(SkactivemlClassifier):
    """A classifier whose answers are known."""

    def __init__(self, probs: np.ndarray | None = None, features: np.ndarray | None = None) -> None:
        super().__init__()
        self.probs, self.features = probs, features

    def fit(self, *_: Any) -> _Known:
        """Nothing to fit."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """Of all points, with their features."""
        return self.probs, self.features


def badge(n: int, d: int, c: int, b: int) -> Callable[[], dict[str, Any]]:
    """From known probabilities and features."""
    features = data.vectors(n, d)
    known = _Known(np.exp(data.log_probs(n, 1, c, 0.3)[:, 0]), features)
    strategy = Badge(random_state=0)
    labels = np.full(n, np.nan)

    def run() -> dict[str, Any]:
        picks = strategy.query(features, labels, known, fit_clf=False, batch_size=b)
        return {"picks": [int(pick) for pick in picks]}

    return run
