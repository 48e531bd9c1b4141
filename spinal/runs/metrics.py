"""Metrics of predictions: accuracy, likelihood, calibration, and which points are right."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


def evaluate(log_probs_N_C: NDArray, labels_N: NDArray) -> dict[str, Any]:
    """Accuracy, mean negative log-likelihood in nats, expected calibration error and its bins."""
    log_probs = log_probs_N_C.astype(np.float64)
    bins = reliability(np.exp(log_probs), labels_N)
    return {
        "accuracy": float((log_probs.argmax(1) == labels_N).mean()),
        "nll": float(-log_probs[np.arange(len(labels_N)), labels_N].mean()),
        "ece": calibration_error(bins),
        "reliability": {name: np.round(values, 4).tolist() for name, values in bins.items()},
    }


def reliability(probs_N_C: NDArray, labels_N: NDArray, bins: int = BINS) -> dict[str, NDArray]:
    """Points in bins of equal width by confidence, the largest class probability of a point.

    Returns:
        For each bin, the number of points (``count``), the number of correctly classified points
        (``right``), and the sum of their ``confidence``.
    """
    confidence = probs_N_C.max(1)
    right = probs_N_C.argmax(1) == labels_N
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return {
        "count": np.bincount(bin_of, minlength=bins),
        "right": np.bincount(bin_of[right], minlength=bins),
        "confidence": np.bincount(bin_of, confidence, bins),
    }


def calibration_error(reliability: dict[str, NDArray]) -> float:
    r"""Expected calibration error, :math:`\sum_b \frac{n_b}{N} |a_b - c_b|`.

    Here :math:`a_b` is the accuracy and :math:`c_b` the mean confidence of the :math:`n_b` points
    in bin b.
    """
    gap = np.abs(np.subtract(reliability["right"], reliability["confidence"]))
    return float(gap.sum() / np.sum(reliability["count"]))


def pack(right_N: NDArray[np.bool_]) -> str:
    """Which points are right, one bit per point, as text for JSON."""
    return base64.b64encode(np.packbits(right_N).tobytes()).decode("ascii")


def unpack(text: str, n: int) -> NDArray[np.bool_]:
    """The inverse of `pack`, for ``n`` points."""
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=n).astype(bool)
