"""How good probabilities are, on test points that have weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BINS = 15
#: Smaller probabilities count as this one: no finite test set can tell them apart.
FLOOR = 1e-6


def measure(
    probs_N_C: NDArray, labels_N: NDArray[np.int64], weights_N: NDArray[np.float64]
) -> dict[str, float]:
    """Accuracy, balanced accuracy, negative log-likelihood (nats), ECE and Brier score.

    All are means over points with weights, but for balanced accuracy: the mean over classes of the
    share that was recognised. The Brier score is the squared distance to the one-hot truth.
    """
    probs = np.asarray(probs_N_C, np.float64)
    if not np.isfinite(probs).all() or np.abs(probs.sum(1) - 1).max() > 1e-3:
        raise ValueError("these are no probabilities: not finite, or their sum is not 1")
    points = np.arange(len(labels_N))
    right = probs.argmax(1) == labels_N
    recall = np.bincount(labels_N, right) / np.maximum(np.bincount(labels_N), 1)
    squares = ((probs - np.eye(probs.shape[1])[labels_N]) ** 2).sum(1)
    nats = -np.log(np.maximum(probs[points, labels_N], FLOOR))
    return {
        "accuracy": float(np.average(right, weights=weights_N)),
        "balanced": float(recall[np.unique(labels_N)].mean()),
        "nll": float(np.average(nats, weights=weights_N)),
        "ece": calibration_error(probs.max(1), right, weights_N),
        "brier": float(np.average(squares, weights=weights_N)),
    }


def calibration_error(
    confidence_N: NDArray, right_N: NDArray[np.bool_], weights_N: NDArray[np.float64]
) -> float:
    """Expected calibration error over `BINS` bins of equal width."""
    bins = np.minimum((confidence_N * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights_N * (right_N - confidence_N), BINS)
    return float(np.abs(gaps).sum() / weights_N.sum())
