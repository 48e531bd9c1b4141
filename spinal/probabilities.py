r"""Arithmetic of class probabilities, in natural logarithms. N points, K samples, C classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def mean_log_probs(log_probs_N_K_C: Tensor) -> Tensor:
    r""":math:`\log \frac1K \sum_k p_{kc}`, the mean prediction of all samples, ``[N, C]``."""
    return log_probs_N_K_C.logsumexp(1) - math.log(log_probs_N_K_C.shape[1])


def entropy(log_probs: Tensor) -> Tensor:
    r""":math:`-\sum_c p_c \log p_c` over the last axis; 0 log 0 is 0."""
    # exp(-1e300) is 0, like exp(-inf), but 0 * -1e300 is 0, not NaN.
    lowest = torch.finfo(log_probs.dtype).min
    return -(log_probs.exp() * log_probs.clamp_min(lowest)).sum(-1).clamp_max(0)


def margin(log_probs_N_C: Tensor) -> Tensor:
    r""":math:`p_{(1)} - p_{(2)}`, of the two most probable classes, ``[N]``."""
    best = log_probs_N_C.topk(min(2, log_probs_N_C.shape[1])).values.exp()
    return best[:, 0] - (best[:, 1] if best.shape[1] == 2 else 0)


def sharpened(log_probs: Tensor, power: float) -> Tensor:
    r""":math:`p_c^\beta / \sum_{c'} p_{c'}^\beta` over the last axis, :math:`\beta` the power."""
    return log_probs if power == 1 else (power * log_probs).log_softmax(-1)
