"""TypiClust: typical points of clusters that have no label yet, for the very first labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates

#: From this many clusters on, mini-batch k-means is used, as in the paper.
_MANY = 50
#: Number of distances in memory at once.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class TypiClust(Acquisition):
    r"""Most typical points of the largest clusters without labels (Hacohen et al., 2022).

    k-means divides all points, including L labelled points, into
    :math:`\min(L + b, \text{max\_clusters})` clusters. The clusters take turns, starting with those
    that have the fewest labels, larger clusters first. Each gives its most typical candidate, that
    is, the one with the smallest mean distance to its nearest neighbours in the cluster.

    Args:
        max_clusters: Maximum number of clusters.
        neighbours: Number of neighbours that measure typicality; at most half of the cluster, as in
            the authors' code.
        min_size: Smaller clusters count as outliers and come last.
    """

    max_clusters: int = 500
    neighbours: int = 20
    min_size: int = 5

    needs: ClassVar[frozenset[str]] = frozenset({"features", "labelled_features"})

    def __post_init__(self) -> None:
        if self.max_clusters < 1 or self.neighbours < 1:
            raise AcquisitionError("max_clusters and neighbours must be at least 1")

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.features is not None
        assert candidates.labelled_features is not None
        n, labelled = len(candidates), len(candidates.labelled_features)
        points = torch.cat([candidates.features, candidates.labelled_features]).float().cpu()
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
        cluster = cluster_points(points.numpy(), min(labelled + b, self.max_clusters), seed)
        size = np.bincount(cluster)
        labels = np.bincount(cluster[n:], minlength=len(size))
        chance = torch.randperm(len(size), generator=generator).numpy()
        # The last key counts most.
        turns = np.lexsort((chance, -size, labels, size < self.min_size))
        queues = [
            self._most_typical_first(points, np.flatnonzero(cluster == c), n, generator)
            for c in turns
            if size[c] > labels[c]
        ]
        picks: list[int] = []
        while len(picks) < b:
            picks.extend(queue.pop(0) for queue in queues[: b - len(picks)])
            queues = [queue for queue in queues if queue]
        return torch.tensor(picks)

    def _most_typical_first(
        self, points: Tensor, members: NDArray[np.int64], n: int, generator: torch.Generator
    ) -> list[int]:
        """The candidates (positions below ``n``) among the members of a cluster."""
        shuffled = torch.from_numpy(members)[torch.randperm(len(members), generator=generator)]
        spread = mean_distance(points[shuffled], self.neighbours)
        ranked = shuffled[spread.argsort(stable=True)]
        return ranked[ranked < n].tolist()


def cluster_points(points: NDArray[np.float32], clusters: int, seed: int) -> NDArray[np.int64]:
    """The cluster of each point; there are fewer clusters if points coincide."""
    if clusters > _MANY:
        kmeans = MiniBatchKMeans(clusters, batch_size=5000, random_state=seed, n_init=1)
    else:
        kmeans = KMeans(clusters, random_state=seed, n_init=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # raised if points coincide
        found = kmeans.fit_predict(points)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def mean_distance(points_N_D: Tensor, neighbours: int) -> Tensor:
    """Mean distance of each point to its nearest others, ``[N]``; 0 for a single point.

    The number of others is ``neighbours``, but at most N // 2.
    """
    nearest = min(neighbours, len(points_N_D) // 2)
    if nearest < 1:
        return torch.zeros(len(points_N_D))
    parts = []
    start = 0
    for part in points_N_D.split(max(1, _CHUNK // len(points_N_D))):
        away = torch.cdist(part, points_N_D)
        away[torch.arange(len(part)), torch.arange(start, start + len(part))] = torch.inf
        parts.append(away.topk(nearest, largest=False).values.mean(1))
        start += len(part)
    return torch.cat(parts)
