"""Features of the pool, computed once for each state of the network."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.data import Points
from spinal.networks import Network, compute_features
from spinal.posteriors import View


class FeatureCache:
    """Features of points under one state of the network, each computed when first needed."""

    def __init__(self, network: Network, points: Points) -> None:
        self.network, self.points = network, points
        self._row = np.full(len(points), -1, np.int64)
        self._features: Tensor | None = None

    def extend(self, points: Points) -> None:
        """Replace the points by the same points with more after them."""
        n_new = len(points) - len(self.points)
        self.points, self._row = points, np.append(self._row, np.full(n_new, -1))

    def passing_view(self, indices: NDArray[np.int64]) -> View:
        """Like `view`, for points that are used only once: nothing is cached."""
        features = compute_features(self.network, self.points, indices)
        return View(self.network, self.points, indices, features)

    def view(self, indices: NDArray[np.int64]) -> View:
        """Features and points at ``indices`` of the pool."""
        new = indices[self._row[indices] < 0]
        if len(new):
            computed = compute_features(self.network, self.points, new)
            start = 0 if self._features is None else len(self._features)
            self._row[new] = np.arange(start, start + len(new))
            parts = [computed] if self._features is None else [self._features, computed]
            self._features = torch.cat(parts)
        if self._features is None:  # no points
            return self.passing_view(indices)
        rows = torch.from_numpy(self._row[indices])
        return View(self.network, self.points, indices, self._features[rows])
