"""Squared Euclidean distances, one point to all: never an array of N x N numbers."""

from __future__ import annotations

import torch
from torch import Tensor

#: Distances that are held at once.
_CHUNK = 1 << 22


class Products:
    r"""Points :math:`a_n \otimes b_n \otimes \dots`, held as their factors.

    Norms and inner products of such points are products of those of the factors, so that distances
    need no array of the size of the points. With one factor they are plain vectors.
    """

    def __init__(self, *factors: Tensor) -> None:
        self._factors = factors
        self.squared_norms_N = torch.ones_like(factors[0][:, 0])
        for factor in factors:
            self.squared_norms_N *= squared_norms(factor)

    def squared_distances(self, i: int) -> Tensor:
        """From point ``i`` to every point, ``[N]``; exactly 0 to itself."""
        inner_N = torch.ones_like(self.squared_norms_N)
        for factor in self._factors:
            inner_N *= factor @ factor[i]
        # In place: what is left of the time goes into allocations otherwise.
        away_N = inner_N.mul_(-2).add_(self.squared_norms_N).add_(self.squared_norms_N[i])
        away_N[i] = 0
        return away_N.clamp_min_(0)


def squared_norms(points_N_D: Tensor) -> Tensor:
    """Of all points, ``[N]``, without a copy of their size."""
    rows = max(1, _CHUNK // max(1, points_N_D.shape[1]))
    return torch.cat([part.square().sum(1) for part in points_N_D.split(rows)])


def squared_distances_to_nearest(points_N_D: Tensor, others_L_D: Tensor) -> Tensor:
    """From every point to the nearest of the others, ``[N]``; infinite if there are none."""
    if not len(others_L_D):
        return points_N_D.new_full((len(points_N_D),), torch.inf)
    norms_L = others_L_D.square().sum(1)
    parts = [
        (norms_L - 2 * part @ others_L_D.T).amin(1) + part.square().sum(1)
        for part in points_N_D.split(max(1, _CHUNK // len(others_L_D)))
    ]
    return torch.cat(parts).clamp_min(0)
