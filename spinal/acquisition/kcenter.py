"""k-center greedy (core-set): always the point that is farthest from all labelled points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.distances import Products, squared_distances_to_nearest
from spinal.acquisition.ranking import argmax


@dataclass(frozen=True)
class KCenter(Acquisition):
    r"""Farthest-first traversal of the feature space (Sener and Savarese, 2018).

    Each pick is :math:`\arg\max_n \min_{m \in L \cup S} |z_n - z_m|`, with the labelled points L
    and the earlier picks S. The remaining covering radius is at most twice the minimum. Without
    labelled points, the first pick is random. Each pick takes :math:`O(N D)` time.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"features", "labelled_features"})

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.features is not None
        assert candidates.labelled_features is not None
        # Differences of large squares lose precision; after centring, squares are small.
        centre_D = candidates.features.mean(0)
        points_N_D = candidates.features - centre_D
        nearest_N = squared_distances_to_nearest(
            points_N_D, candidates.labelled_features - centre_D
        )
        points, picks = Products(points_N_D), []
        for _ in range(b):
            picks.append(argmax(nearest_N, generator))
            torch.minimum(nearest_N, points.squared_distances(picks[-1]), out=nearest_N)
            nearest_N[picks[-1]] = -1  # below duplicates of picked points
        return torch.tensor(picks)
