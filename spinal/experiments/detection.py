"""How well a score separates points of another dataset from points of the training dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

#: False-positive rates at which ROC curves are stored.
RATES = np.linspace(0, 1, 101)


def detection(inside_N: NDArray, outside_M: NDArray) -> dict[str, Any]:
    """Measures of a score that should be higher outside than inside.

    *Outside*, the other dataset, is the positive class of all measures except ``aupr_inside``.

    Args:
        inside_N: scores of points of the training dataset.
        outside_M: scores of points of the other dataset.

    Returns:
        A dict with

        - ``auroc``: the probability that a random point outside scores higher than a random point
          inside, with ties counted as one half;
        - ``aupr_outside`` and ``aupr_inside``: average precision with outside or inside as the
          positive class; a random score gives the share of that class;
        - ``fpr95``: the false-positive rate at a true-positive rate of 95 %;
        - ``roc``: true-positive rates at `RATES`.
    """
    truth = np.repeat([0, 1], [len(inside_N), len(outside_M)])
    score = np.concatenate([inside_N, outside_M]).astype(np.float64)
    false_rate, true_rate, _ = roc_curve(truth, score, drop_intermediate=False)
    at = np.searchsorted(false_rate, RATES, side="right") - 1
    return {
        "auroc": float(roc_auc_score(truth, score)),
        "aupr_outside": float(average_precision_score(truth, score)),
        "aupr_inside": float(average_precision_score(1 - truth, -score)),
        "fpr95": float(false_rate[np.searchsorted(true_rate, 0.95)]),
        "roc": np.round(true_rate[at], 4).tolist(),
    }


def histogram(entropy_N: NDArray, n_classes: int, bins: int = 200) -> list[int]:
    """Counts of entropies in nats, in bins of equal width from 0 to the logarithm of C."""
    highest = np.log(n_classes)
    return np.histogram(entropy_N.clip(0, highest), bins, (0, highest))[0].tolist()
