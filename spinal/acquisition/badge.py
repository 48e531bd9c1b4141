"""BADGE: large and diverse gradients of the last layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.distances import Products
from spinal.acquisition.ranking import argmax
from spinal.probabilities import mean_log_probs


@dataclass(frozen=True)
class BADGE(Acquisition):
    r"""k-means++ seeding on hypothetical gradients (Ash et al., 2020).

    With the predicted class :math:`\hat y` as the label, the gradient of the cross-entropy with
    respect to the weights of the last layer is
    :math:`g_n = (\bar p_n - e_{\hat y_n}) \otimes z_n`. It is long if the prediction is uncertain.
    As in the authors' code, the first pick is the longest gradient. Each further pick is drawn with
    a probability proportional to its squared distance from the nearest earlier pick.

    Only the factors ``[N, C]`` and ``[N, D]`` are stored, never the gradients ``[N, C D]``.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "features"})

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.log_probs is not None
        assert candidates.features is not None
        error_N_C = mean_log_probs(candidates.log_probs).exp()
        predicted_N_1 = error_N_C.argmax(1, keepdim=True)
        error_N_C.scatter_add_(1, predicted_N_1, -torch.ones_like(error_N_C[:, :1]))
        dtype = torch.promote_types(error_N_C.dtype, candidates.features.dtype)
        gradients = Products(candidates.features.to(dtype), error_N_C.to(dtype))
        return plus_plus(gradients, b, generator)


def plus_plus(points: Products, b: int, generator: torch.Generator) -> Tensor:
    """k-means++ seeding: ``b`` distinct positions, the longest vector first."""
    picks = [argmax(points.squared_norms_N, generator)]
    nearest_N = points.squared_distances(picks[0])
    for _ in range(b - 1):
        picks.append(draw(nearest_N, picks, generator))
        torch.minimum(nearest_N, points.squared_distances(picks[-1]), out=nearest_N)
    return torch.tensor(picks)


def draw(weights_N: Tensor, taken: list[int], generator: torch.Generator) -> int:
    """Draw a position with probability proportional to its weight; if all are 0, any not taken."""
    # In float64: float32 would never reach the last of many points.
    cumulative_N = weights_N.cpu().double().cumsum(0)
    total = cumulative_N[-1]
    if total <= 0:
        free_N = torch.ones(len(weights_N), dtype=torch.float64)
        free_N[taken] = 0
        return draw(free_N, taken, generator)
    at = torch.rand(1, generator=generator, dtype=torch.float64) * total
    # right=True skips points with weight 0, including those already taken.
    return int(torch.searchsorted(cumulative_N, at, right=True))
