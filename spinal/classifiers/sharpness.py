r"""Temperature scaling: :math:`p^\beta / \sum_c p_c^\beta`, fitted to held-out points."""

from __future__ import annotations

import torch
from torch import Tensor

from spinal.classifiers.parts import held_out_loss
from spinal.probabilities import sharpened

_CHOICES = torch.logspace(-1, 0.7, 35)


def fit_sharpness(
    log_probs: Tensor, labels: Tensor, usual: float = 1.0, pull: float = 0.0
) -> float:
    r"""The power that makes held-out points most likely; ``usual`` if there are none.

    Args:
        log_probs: predictions ``[N, C]`` for held-out points.
        labels: their classes ``[N]``.
        usual: :math:`\beta_0`, a power that the result is drawn to.
        pull: how strongly: ``pull`` :math:`\log^2 (\beta / \beta_0)` is added to the sum of the
            losses.
    """
    if not len(labels):
        return usual
    losses = torch.tensor([
        float(held_out_loss(sharpened(log_probs, float(b)), labels)) for b in _CHOICES
    ])  # fmt: skip
    away = (_CHOICES / usual).log().square()
    return float(_CHOICES[int((losses + pull / len(labels) * away).argmin())])
