r"""Temperature scaling: :math:`p^\beta / \sum_c p_c^\beta`, fitted to held-out points."""

from __future__ import annotations

import torch
from torch import Tensor

from spinal.classifiers.parts import held_out_loss
from spinal.probabilities import sharpened

_CHOICES = torch.logspace(-1, 0.7, 35)


def fit_sharpness(log_probs: Tensor, labels: Tensor) -> float:
    """The power that makes held-out points most likely; 1 if there are none.

    Args:
        log_probs: predictions ``[N, C]`` for held-out points.
        labels: their classes ``[N]``.
    """
    if not len(labels):
        return 1.0
    losses = [float(held_out_loss(sharpened(log_probs, float(b)), labels)) for b in _CHOICES]
    return float(_CHOICES[int(torch.tensor(losses).argmin())])
