r"""Quality of predictions of independent classes: F1 and average precision, with intervals.

For a class with probabilities :math:`p_i`, labels :math:`y_i` and weights :math:`w_i`, F1 is
:math:`2\,TP / (2\,TP + FP + FN)` of the decisions :math:`p_i > \tfrac12`, and the average precision
is the mean, over images that have the class, of the precision among all images that are at least as
probable,

.. math::
    AP = \frac{\sum_i w_i y_i P_i}{\sum_i w_i y_i} , \qquad
    P_i = \frac{\sum_j w_j y_j [p_j \ge p_i]}{\sum_j w_j [p_j \ge p_i]} .

Both are averaged over classes (macro-F1, mean average precision). The interval is from the 2.5 to
the 97.5 percentile over bootstrap samples of the images. It shows how the score varies with the
images; it cannot show how labelled images differ from others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinal.label.learning.sets import UNKNOWN, predicted

#: Number of bootstrap samples, and minimum number of images for an interval.
SAMPLES, LEAST = 400, 10


def f1(
    probs: NDArray, labels: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """F1 of a class, ``[B]``, from ``probs [M]``, ``labels [M]`` and B rows of ``weights [B, M]``.

    0 where the class is neither predicted nor present.
    """
    said = predicted(probs)
    hits, wrong = weights @ (said & labels), weights @ (said != labels)
    return 2 * hits / np.maximum(2 * hits + wrong, 1e-12)


def average_precision(
    probs: NDArray, labels: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The average precision of a class, ``[B]``; see `f1`. 0 if no image has the class."""
    order = np.argsort(-probs, kind="stable")
    y, w = labels[order], weights[:, order]
    # Images with the same probability all get the precision at the last of them.
    last = np.searchsorted(-probs[order], -probs[order], side="right") - 1
    hits, all_above = np.cumsum(w * y, 1)[:, last], np.cumsum(w, 1)[:, last]
    precision = hits / np.maximum(all_above, 1e-12)
    return (w * y * precision).sum(1) / np.maximum((w * y).sum(1), 1e-12)


def with_interval(
    score: Callable[..., NDArray[np.float64]],
    probs: NDArray,
    labels: NDArray[np.int64],
    seed: int = 0,
) -> dict[str, float] | None:
    """The mean of a score over classes, with a 95 % interval.

    Args:
        score: `f1` or `average_precision`.
        probs: of each class, ``[M, C]``; NaN if unknown.
        labels: 1 present, 0 absent, -1 unknown, ``[M, C]``.
        seed: for the bootstrap samples.

    Returns:
        ``value``, ``low``, ``high``, the number ``n`` of images, and the number of ``classes`` that
        occur; None if there are too few images, or no such class.
    """
    known = ~np.isnan(probs) & (labels != UNKNOWN)
    usable = [c for c in range(probs.shape[1]) if (labels[known[:, c], c] == 1).any()]
    n = len(probs)
    if n < LEAST or not usable:
        return None
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), SAMPLES)
    weights = np.vstack([np.ones(n), drawn])
    scores = np.mean(
        [
            score(probs[k, c], labels[k, c] == 1, weights[:, k])
            for c in usable
            for k in [known[:, c]]
        ],
        axis=0,
    )
    low, high = np.quantile(scores[1:], (0.025, 0.975))
    return {
        "value": float(scores[0]), "low": float(min(low, scores[0])),
        "high": float(max(high, scores[0])), "n": n, "classes": len(usable),
    }  # fmt: skip
