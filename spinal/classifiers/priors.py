r"""Class frequencies, estimated from few labels.

A classifier that was fitted under class frequencies :math:`\pi` predicts :math:`p(c \mid x)`. If
the frequencies are :math:`q`, and :math:`p(x \mid c)` is the same, it should predict
:math:`p(c \mid x)\, q_c / \pi_c`, normalised.

**From labels.** Counts vary by chance: fifty random labels of ten equally frequent classes may
contain two of one class and eleven of another. So frequencies are assumed to come from a Dirichlet
distribution :math:`(a, \dots, a)`, and each :math:`a` is weighted by the probability of the counts
:math:`n_c` under it,

.. math::
    q_c = \sum_a w_a \frac{n_c + a}{N + C a}, \qquad
    w_a \propto \frac{\Gamma(C a)}{\Gamma(N + C a)} \prod_c \frac{\Gamma(n_c + a)}{\Gamma(a)} .

**From the pool**, for labels that were not drawn at random: EM on the predictions for M unlabelled
points (Saerens et al., 2002), plus N points with the frequencies of the labels,

.. math::
    q'_c \leftarrow \frac{\sum_i p_{q'}(c \mid x_i) + N q_c}{M + N} .

It needs calibrated predictions, and does harm without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from spinal.errors import SpinalError

Prior = Literal["labels", "pool", "uniform"]
PRIORS: tuple[Prior, ...] = get_args(Prior)
_STEPS = 100
#: Choices of a: from add-one smoothing to almost equal frequencies.
_ALIKE = torch.logspace(0, 2, 21, dtype=torch.float64)


def check_prior(prior: str | Sequence[float]) -> None:
    """Check a prior.

    Raises:
        SpinalError: for an unknown name, or numbers that are not positive.
    """
    if isinstance(prior, str):
        if prior not in PRIORS:
            raise SpinalError(f"prior is one of {', '.join(PRIORS)}, or numbers, not {prior!r}")
    elif not len(prior) or not all(math.isfinite(p) and p > 0 for p in prior):
        raise SpinalError(f"a prior has a positive number for every class, not {list(prior)}")


def check_class_weight(weight: str | Sequence[float] | None) -> None:
    """Check class weights.

    Raises:
        SpinalError: for a name other than ``balanced``, or numbers that are not positive.
    """
    if isinstance(weight, str):
        if weight != "balanced":
            raise SpinalError(f"class_weight is 'balanced', numbers, or None, not {weight!r}")
    elif weight is not None and not (
        len(weight) and all(math.isfinite(w) and w > 0 for w in weight)
    ):
        raise SpinalError(f"class_weight has a positive number for every class, not {list(weight)}")


def add_one(counts: Tensor) -> Tensor:
    """Frequencies with add-one smoothing, ``[C]`` from counts ``[C]``, float64."""
    smoothed = counts.double() + 1
    return smoothed / smoothed.sum()


def label_frequencies(counts: Tensor) -> Tensor:
    """Class frequencies ``[C]`` from the counts of labels ``[C]``, float64."""
    counts, a = counts.double(), _ALIKE[:, None]
    n, n_classes = counts.sum(), len(counts)
    log_w = (torch.lgamma(counts + a) - torch.lgamma(a)).sum(1)
    log_w += torch.lgamma(n_classes * _ALIKE) - torch.lgamma(n + n_classes * _ALIKE)
    return log_w.softmax(0) @ ((counts + a) / (n + n_classes * a))


def overcorrected(frequencies: Tensor, before: Tensor) -> Tensor:
    r"""Class frequencies ``[C]`` for classifiers on the features of a network.

    The features of a network that was trained on labels also favour the frequent classes. So the
    correction is increased by half: :math:`q'_c \propto \pi_c (q_c / \pi_c)^{1.5}`.

    Args:
        frequencies: the desired frequencies, ``[C]``.
        before: the frequencies of the labels, ``[C]``.
    """
    shifted = before * (frequencies / before) ** 1.5
    return shifted / shifted.sum()


def pool_frequencies(log_probs: Tensor, before: Tensor, guard: Tensor, n_labels: int) -> Tensor:
    """Class frequencies ``[C]`` by EM on predictions.

    Args:
        log_probs: predictions for M unlabelled points, ``[M, C]``.
        before: class frequencies that the predictions assume, ``[C]``.
        guard: frequencies from the labels, ``[C]``.
        n_labels: N.
    """
    q = guard
    for _ in range(_STEPS):
        votes = shift_prior(log_probs.double(), before, q).exp().sum(0)
        q = (votes + n_labels * guard) / (len(log_probs) + n_labels)
    return q


def given_frequencies(prior: Sequence[float], n_classes: int) -> Tensor:
    """Class frequencies ``[C]`` from a number for each class.

    Raises:
        SpinalError: if the number of values is not the number of classes.
    """
    if len(prior) != n_classes:
        raise SpinalError(f"a prior of {len(prior)} numbers, but {n_classes} classes")
    numbers = torch.tensor(list(prior), dtype=torch.float64)
    return numbers / numbers.sum()


def weighted_frequencies(frequencies: Tensor, weight: str | Sequence[float] | None) -> Tensor:
    """Class frequencies ``[C]`` if a point of class c counts ``weight[c]`` times.

    Args:
        frequencies: frequencies if every point counts once, ``[C]``.
        weight: a number for each class; ``balanced`` for 1 / frequencies; None for 1.

    Raises:
        SpinalError: if the number of weights is not the number of classes.
    """
    if weight is None:
        return frequencies
    if isinstance(weight, str):  # balanced
        return torch.full_like(frequencies, 1 / len(frequencies))
    if len(weight) != len(frequencies):
        raise SpinalError(f"class_weight has {len(weight)} numbers for {len(frequencies)} classes")
    weighted = frequencies * torch.tensor(list(weight)).to(frequencies)
    return weighted / weighted.sum()


def shift_prior(log_probs: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Predictions ``[N, C]`` under other class frequencies ``[C]``."""
    return (log_probs + (after.log() - before.log())).log_softmax(1)
