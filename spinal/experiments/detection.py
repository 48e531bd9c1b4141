"""How well a score tells points of another dataset from those of the one that was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

#: False-positive rates at which ROC curves are kept.
RATES = np.linspace(0, 1, 101)


def detection(inside_N: NDArray, outside_M: NDArray) -> dict[str, Any]:
    """Measures of a score that should be higher outside than inside.

    *Outside*, the other dataset, is what is to be detected: the positive class of all measures
    but ``aupr_inside``.

    Args:
        inside_N: scores of points of the dataset that was trained on.
        outside_M: scores of points of the other one.

    Returns:
        ``auroc``: the chance that a point from outside scores higher than one from inside, ties
        counted half. ``aupr_outside``, ``aupr_inside``: average precision with either as the
        positive class; by chance, its share of all points. ``fpr95``: of the points inside, the
        share that is called outside where 95 % of those outside are. ``roc``: true-positive rates
        at `RATES`.
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


def histogram(entropy_N: NDArray, classes: int, bins: int = 200) -> list[int]:
    """Counts of entropies in nats, in bins of equal width from 0 to the logarithm of C."""
    highest = np.log(classes)
    return np.histogram(entropy_N.clip(0, highest), bins, (0, highest))[0].tolist()
