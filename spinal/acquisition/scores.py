r"""Scores of single points: functions from ``log_probs_N_K_C`` to ``[N]``, high where uncertain.

Write :math:`p_{kc} = p(c \mid x, \omega_k)`, :math:`\bar p_c = \frac1K \sum_k p_{kc}`,
:math:`H` for the entropy in nats. Scores are float64, never negative, and computed a few points at
a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from spinal.acquisition.candidates import chunks
from spinal.probabilities import entropy, mean_log_probs
from spinal.probabilities import margin as margin_of

Score = Callable[[Tensor], Tensor]


def _by_point(score: Score) -> Score:
    """Apply a score in float64 to a few points at a time."""

    @wraps(score)
    def whole(log_probs_N_K_C: Tensor) -> Tensor:
        parts = [score(part.double()) for part in chunks(log_probs_N_K_C)]
        return torch.cat(parts)

    return whole


@_by_point
def max_entropy(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`H[\bar p]`."""
    return entropy(mean_log_probs(log_probs_N_K_C))


@_by_point
def variation_ratio(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`1 - \max_c \bar p_c`."""
    return _complement(mean_log_probs(log_probs_N_K_C).amax(-1).exp())


@_by_point
def variation_ratio_votes(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`1 - \frac1K \max_c \#\{k : \arg\max_{c'} p_{kc'} = c\}`: votes against the mode."""
    classes, samples = log_probs_N_K_C.shape[2], log_probs_N_K_C.shape[1]
    votes_N_K = log_probs_N_K_C.argmax(-1)
    counts_N_C = torch.nn.functional.one_hot(votes_N_K, classes).sum(1)
    return 1 - counts_N_C.amax(-1).double() / samples


@_by_point
def margin(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`1 - (\bar p_{(1)} - \bar p_{(2)})`, of the two most probable classes."""
    return _complement(margin_of(mean_log_probs(log_probs_N_K_C)))


@_by_point
def bald(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`H[\bar p] - \frac1K \sum_k H[p_k]`: the information in the label about the model.

    Houlsby et al., 2011. Exactly 0 if there is only one sample.
    """
    if log_probs_N_K_C.shape[1] == 1:
        return log_probs_N_K_C.new_zeros(len(log_probs_N_K_C))
    within = entropy(log_probs_N_K_C).mean(1)
    return (entropy(mean_log_probs(log_probs_N_K_C)) - within).clamp_min(0)


@_by_point
def mean_std(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`\frac1C \sum_c \sqrt{\frac1K \sum_k (p_{kc} - \bar p_c)^2}`."""
    return log_probs_N_K_C.exp().std(1, correction=0).mean(-1)


#: The scores that are 0 for a single sample.
COMPARING: tuple[Score, ...] = (variation_ratio_votes, bald, mean_std)


def _complement(p: Tensor) -> Tensor:
    """``1 - p``, or 0 if rounding errors put p above 1."""
    return (1 - p).clamp_min(0)
