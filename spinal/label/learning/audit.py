r"""The accuracy of the model on all images, estimated from a few answers about random images.

The audit consists of n images, drawn uniformly, whose answers are also used for training. For image
i of the audit, :math:`c_i` is 1 if a model that was trained without its answer predicts it, else 0,
and :math:`f_i` is the confidence of that model, its highest class probability. For M other images
that were drawn in the same way and have no answer, the confidence :math:`f_j` is that of the model
itself. The prediction-powered estimate of the accuracy (Angelopoulos et al., 2023) is

.. math::
    \hat\theta = \frac1n \sum_i (c_i - \lambda f_i) + \frac\lambda M \sum_j f_j , \qquad
    \lambda = \frac{\operatorname{Cov}(c, f)}{(1 + n / M) \operatorname{Var}(f)} ,

where :math:`\lambda`, limited to [0, 1], minimises the variance
:math:`v = \operatorname{Var}(c - \lambda f) / n + \lambda^2 \operatorname{Var}(f) / M`. For
:math:`\lambda = 0` the estimate is the share of right predictions.

With ten answers, all of them right, v is close to 0, and a normal interval has no width. So the
confidences only count as additional answers: m is the number of answers that would give the
variance v without confidences,

.. math::
    m = (n - 2) \frac{\operatorname{Var}(c) / n}{v} ,

where 2 accounts for :math:`\lambda` and the mean, which come from the same answers. The limits of
the interval are quantiles of

.. math::
    \operatorname{Beta}\big(m \hat\theta + u,\; m (1 - \hat\theta) + 1 - u\big),

extended to include an estimate of 0 or 1. With :math:`u = \tfrac12` this is the Jeffreys interval.
But few numbers of right answers are possible, and it would hold too often for some accuracies and
not often enough for others. A random u from 0 to 1 makes all numbers possible (Stevens, 1950). Here
u is the probability that n random images have a higher mean confidence than those of the audit: it
is random, too, and large if the audit happened to get hard images. It is limited to [.01, .99]:
with ten answers, all of them right, the lower limit is at most 99.4 %, and usually about 74 %.
``results/coverage.md`` shows how often the interval holds in simulations.

The estimate is slightly too low: models without some answers are slightly worse, and the model had
no reason to ask for images similar to those of the audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

#: A model that judges images of the audit is trained without at most this share of the answers.
LEFT_OUT = 0.05
#: The least and the greatest u.
_LIMITS = (0.01, 0.99)
#: Number of draws of random images from which u is computed.
_DRAWS = 1000


@dataclass(frozen=True)
class Accuracy:
    """An estimate of the accuracy, and its 95 % interval.

    Attributes:
        value: the share of all images that the model predicts right.
        low: the lower limit.
        high: the upper limit.
        audited: number of answers in the audit.
        correct: number of these that models trained without them predict right.
    """

    value: float
    low: float
    high: float
    audited: int
    correct: int


def estimate_accuracy(
    is_correct: NDArray[np.bool_], confidence: NDArray, other_confidence: NDArray
) -> Accuracy:
    """The prediction-powered estimate; see above.

    Args:
        is_correct: whether an image of the audit was predicted right, ``[n]``, by a model without
            its answer.
        confidence: that model's highest class probability, ``[n]``.
        other_confidence: the same of the model itself, for images without an answer, ``[M]``.
    """
    c, f, others = (np.asarray(x, np.float64) for x in (is_correct, confidence, other_confidence))
    n, weight, answers = len(c), 0.0, float(max(len(c) - 2, 0))
    spread = np.var(np.concatenate([f, others]), ddof=1) if n + len(others) > 1 else 0.0
    if n > 2 and len(others) and spread > 0 and c.min() < c.max():
        per_other = n / len(others)
        weight = np.clip(np.cov(c, f)[0, 1] / ((1 + per_other) * spread), 0, 1)
        residual = np.var(c - weight * f) * n / (n - 2)
        variance = residual + weight**2 * per_other * spread
        answers *= max(np.var(c, ddof=1) / variance, 1.0)
    shift = weight * (others.mean() - f.mean()) if weight else 0.0
    value = float(np.clip(c.mean() + shift, 0, 1))
    u = _hardness(f, others)
    low, high = beta.ppf((0.025, 0.975), answers * value + u, answers * (1 - value) + 1 - u)
    return Accuracy(value, min(float(low), value), max(float(high), value), n, int(c.sum()))


def _hardness(confidence: NDArray, others: NDArray) -> float:
    """The probability that random images have a higher mean confidence than these; see above.

    Draws use a fixed seed. Equal means count half, so the result is 1/2 if all confidences are
    equal.
    """
    everyone = np.concatenate([confidence, others])
    drawn = np.random.default_rng(0).choice(everyone, (_DRAWS, len(confidence))).mean(1)
    mean = confidence.mean()
    is_tie = np.isclose(drawn, mean, rtol=0, atol=1e-9)
    u = np.where(is_tie, 0.5, drawn > mean).mean()
    return float(np.clip(u, *_LIMITS))


def audit_folds(audited: int, labelled: int) -> NDArray[np.int64]:
    """The fold of each image of the audit, ``[audited]``; each fold is left out by one model.

    There are few folds, so that few models are needed, but each has at most `LEFT_OUT` of all
    answers.
    """
    most = max(int(LEFT_OUT * labelled), 1)
    return np.arange(audited) % -(-audited // most)


def audit_probs(
    audited: NDArray[np.int64],
    trained_on: int,
    n_classes: int,
    predict_without: Callable[[NDArray[np.int64]], NDArray],
) -> NDArray[np.float32] | None:
    """Class probabilities of the images of the audit, by models that were trained without them.

    Args:
        audited: rows of the images of the audit, ``[A]``.
        trained_on: number of all answers.
        n_classes: C.
        predict_without: trains a model without the answers of some rows ``[n]``, and returns its
            probabilities for these rows, ``[n, C]``.

    Returns:
        Probabilities ``[A, C]``; None if there is no audit, or no answer outside it.
    """
    if not len(audited) or len(audited) == trained_on:
        return None
    folds = audit_folds(len(audited), trained_on)
    probs = np.zeros((len(audited), n_classes), np.float32)
    for fold in np.unique(folds):
        probs[folds == fold] = predict_without(audited[folds == fold])
    return probs
