r"""Held-out parts of the labelled points, and the loss that settings are chosen by.

Settings are chosen by predictions for points that the model has not seen. If the number N of these
points is small, all predictions may be right, and the likelihood alone would favour unlimited
confidence. So the loss adds one mistake: every target is smoothed by
:math:`\epsilon = 1 / (N + 1)`,

.. math::
    -\frac1N \sum_i \Big( (1 - \epsilon) \log p(y_i \mid x_i)
      + \frac{\epsilon}{C} \sum_c \log p(c \mid x_i) \Big) .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: Lower log-probabilities are replaced by this in a loss, so that no single point decides.
_LOWEST = -16.0


@dataclass(frozen=True, eq=False)
class Part:
    """Labelled points, of which some are held out.

    Attributes:
        x: features of all points, ``[N, D]``, from a source that has not seen the labels of the
            held-out points.
        held: which points are held out, ``[N]`` booleans.
    """

    x: Tensor
    held: Tensor


def stratified_folds(labels: Tensor, k: int, seed: int) -> Tensor:
    """A fold for each point, ``[N]`` from 0 to k - 1, with similar shares of every class."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    order = order[labels[order].argsort(stable=True)]
    folds = torch.empty_like(order)
    folds[order] = torch.arange(len(order)) % k
    return folds


def held_out_parts(x: Tensor, y: Tensor, k: int, seed: int) -> list[Part]:
    """Cross-validation: each of at most k folds is held out once; empty if there is one point."""
    folds = stratified_folds(y, k, seed)
    return [Part(x, folds == fold) for fold in range(min(k, len(y)))] if len(y) > 1 else []


def held_out_labels(y: Tensor, parts: Sequence[Part]) -> Tensor:
    """Classes of the held-out points of all parts, one part after the other: ``[M]``."""
    return torch.cat([y[:0], *(y[part.held] for part in parts)])


def held_out_loss(log_probs: Tensor, labels: Tensor) -> Tensor:
    """The loss of predictions ``[..., N, C]`` for points with classes ``[N]``: ``[...]``."""
    log_probs = log_probs.clamp_min(_LOWEST)
    epsilon = 1 / (len(labels) + 1)
    index = labels.expand(log_probs.shape[:-1]).unsqueeze(-1)
    right = log_probs.gather(-1, index).squeeze(-1).mean(-1)
    return -(1 - epsilon) * right - epsilon * log_probs.mean((-1, -2))


def add_unseen(log_probs: Tensor, seen: Tensor, counts: Tensor) -> Tensor:
    """Log-probabilities of all classes, from those of the classes that have labels.

    A class without labels gets the share that add-one smoothing gives it, ``1 / (N + C)``.

    Args:
        log_probs: log-probabilities of the seen classes, ``[N, S]``.
        seen: the numbers of these classes, ``[S]``.
        counts: labels of every class, ``[C]``.
    """
    smoothed = ((counts + 1) / (counts + 1).sum()).to(log_probs).log()
    whole = smoothed.expand(len(log_probs), -1).clone()
    whole[:, seen] = log_probs + smoothed[seen].logsumexp(0)
    return whole
