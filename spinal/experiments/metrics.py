"""How good predictions are: accuracy, likelihood, calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evaluate(log_probs_N_C: NDArray, labels_N: NDArray) -> dict[str, float]:
    """Accuracy, negative log-likelihood (nats a point) and expected calibration error."""
    log_probs = log_probs_N_C.astype(np.float64)
    predicted = log_probs.argmax(1)
    nll = -log_probs[np.arange(len(labels_N)), labels_N].mean()
    return {
        "accuracy": float((predicted == labels_N).mean()),
        "nll": float(nll),
        "ece": calibration_error(np.exp(log_probs), labels_N),
    }


def calibration_error(probs_N_C: NDArray, labels_N: NDArray, bins: int = 15) -> float:
    r"""Expected calibration error, :math:`\sum_b \frac{n_b}{N} |a_b - c_b|`.

    Accuracy :math:`a_b` and mean confidence :math:`c_b` of the :math:`n_b` points in bin b; bins
    are of equal width in the confidence, the largest probability of each point.
    """
    confidence = probs_N_C.max(1)
    right = probs_N_C.argmax(1) == labels_N
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(bin_of, right - confidence, bins)
    return float(np.abs(gap).sum() / len(labels_N))
