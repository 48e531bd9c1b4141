"""Squared Euclidean distances from one point to all, without an N x N array."""

from __future__ import annotations

import torch
from torch import Tensor

#: Number of distances in memory at once.
_CHUNK = 1 << 22


class Products:
    r"""Points :math:`a_n \otimes b_n \otimes \dots`, stored as their factors.

    Their norms and inner products are products over the factors, so the points themselves are never
    computed. With one factor they are plain vectors.
    """

    def __init__(self, *factors: Tensor) -> None:
        self._factors = factors
        self.squared_norms_N = torch.ones_like(factors[0][:, 0])
        for factor in factors:
            self.squared_norms_N *= squared_norms(factor)

    def squared_distances(self, i: int) -> Tensor:
        """Squared distances from point ``i`` to every point, ``[N]``; exactly 0 to itself."""
        inner_N = torch.ones_like(self.squared_norms_N)
        for factor in self._factors:
            inner_N *= factor @ factor[i]
        # In place, because allocations would take most of the remaining time.
        away_N = inner_N.mul_(-2).add_(self.squared_norms_N).add_(self.squared_norms_N[i])
        away_N[i] = 0
        return away_N.clamp_min_(0)


def squared_norms(points_N_D: Tensor) -> Tensor:
    """Squared norms of all points, ``[N]``, without copying the points."""
    rows = max(1, _CHUNK // max(1, points_N_D.shape[1]))
    return torch.cat([part.square().sum(1) for part in points_N_D.split(rows)])


def squared_distances_to_nearest(points_N_D: Tensor, others_L_D: Tensor) -> Tensor:
    """Squared distance of each point to the nearest of the others, ``[N]``; infinite if none."""
    if not len(others_L_D):
        return points_N_D.new_full((len(points_N_D),), torch.inf)
    norms_L = others_L_D.square().sum(1)
    parts = [
        (norms_L - 2 * part @ others_L_D.T).amin(1) + part.square().sum(1)
        for part in points_N_D.split(max(1, _CHUNK // len(others_L_D)))
    ]
    return torch.cat(parts).clamp_min(0)
