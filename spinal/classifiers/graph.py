"""A graph over the points of a pool: each point is joined to the points most similar to it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from torch import Tensor

from spinal.classifiers.units import Units, plausible_kinds
from spinal.errors import FileFormatError
from spinal.files import read_arrays, write_arrays

NEIGHBOURS = 10
#: Number of similarities in memory at once.
_CHUNK = 1 << 22
_ARRAYS = ("hashes", "mean", "scale", "nearest", "cosines")


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    r"""The nearest neighbours of N points, by the cosine of centred features.

    Features in different units (see `plausible_kinds`) are divided by their standard deviations
    first.

    Attributes:
        hashes: identify points by their features, ``[N]`` uint64.
        mean: mean of the features, ``[D]``.
        scale: standard deviations of the features, or 1, ``[D]``.
        nearest: neighbours of each point, the most similar first, ``[N, K]``.
        cosines: how similar they are, ``[N, K]``.
    """

    hashes: NDArray[np.uint64]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    nearest: NDArray[np.int64]
    cosines: NDArray[np.float32]

    @classmethod
    def of(cls, x: Tensor, neighbours: int = NEIGHBOURS) -> NeighbourGraph:
        """The graph of points with features ``x [N, D]``.

        Args:
            x: features.
            neighbours: K; smaller if there are fewer other points.
        """
        mixed = plausible_kinds(x) == ("each",)
        scale = Units.fit(x, "each").scale.float() if mixed else torch.ones(x.shape[1])
        mean = x.float().mean(0)
        unit = _unit(x, mean, scale)
        k = min(neighbours, len(x) - 1)
        cosines, nearest = _nearest(unit, unit, k, torch.arange(len(x)))
        arrays = (mean, scale, nearest, cosines)
        return cls(point_hashes(x), *(array.numpy() for array in arrays))

    def grown(self, x: Tensor) -> NeighbourGraph:
        """The graph of these points and M more.

        Args:
            x: features ``[N + M, D]``, first of the points in the graph.

        Returns:
            The graph of all points. It differs from a new graph only in the mean and the scale,
            which are not updated.
        """
        n, k = self.nearest.shape
        unit = _unit(x, torch.from_numpy(self.mean), torch.from_numpy(self.scale))
        new_cosines, new_nearest = _nearest(unit[n:], unit, k, torch.arange(n, len(x)))
        among_new, which = _nearest(unit[:n], unit[n:], min(k, len(x) - n))
        cosines = torch.cat([torch.from_numpy(self.cosines), among_new], 1)
        nearest = torch.cat([torch.from_numpy(self.nearest), which + n], 1)
        best = cosines.topk(k)
        return NeighbourGraph(
            point_hashes(x),
            self.mean,
            self.scale,
            torch.cat([nearest.gather(1, best.indices), new_nearest]).numpy(),
            torch.cat([best.values, new_cosines]).numpy(),
        )

    def can_grow_to(self, hashes: NDArray[np.uint64]) -> bool:
        """Whether these are all points of the graph, and fewer than half as many others."""
        same = self.nearest.shape[1] == NEIGHBOURS and bool(np.isin(self.hashes, hashes).all())
        return same and 2 * len(hashes) < 3 * len(self.hashes)

    def is_sound(self) -> bool:
        """Whether the arrays are consistent, for a graph that was read from a file."""
        n = self.hashes.size
        return (
            self.hashes.dtype == np.uint64
            and self.nearest.dtype == np.int64
            and self.nearest.shape == self.cosines.shape == (n, NEIGHBOURS)
            and self.mean.shape == self.scale.shape
            and bool(((self.nearest >= 0) & (self.nearest < n)).all())
        )

    def smoothing(self) -> csr_matrix:
        r"""The normalised weights :math:`D^{-1/2} W D^{-1/2}`, ``[N, N]``.

        Neighbours i and j have :math:`W_{ij} = \max(0, \cos_{ij})^3`. Two points are neighbours if
        one of them is among the nearest points of the other. D is the diagonal matrix of row sums.
        Rows of points without neighbours are 0.
        """
        n, k = self.nearest.shape
        values = self.cosines.clip(0).astype(np.float64).ravel() ** 3
        weights = csr_matrix((values, self.nearest.ravel(), np.arange(n + 1) * k), (n, n))
        weights = weights.maximum(weights.T)
        degree = np.asarray(weights.sum(1)).ravel()
        scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
        return csr_matrix(diags(scale) @ weights @ diags(scale))


class GraphCache:
    """The graph of a pool, in memory and, if there is a folder, on disk.

    It is reused for the same points, and extended if there are a few more. It is computed again if
    a point is missing, if the number of points has grown by half, or if the file is damaged.

    Args:
        folder: where it is stored; None for memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "neighbours.npz"
        self._graph = self._read()

    def smoothing(self, x: Tensor, first: int | None = None) -> csr_matrix:
        """`NeighbourGraph.smoothing` of points, in their order.

        Args:
            x: features ``[N, D]``.
            first: number of points whose graph is stored; None for all. The other points are added
                for this call only, so the result does not depend on earlier calls.
        """
        first = len(x) if first is None else first
        graph, rows = self._of_pool(x[:first])
        if first < len(x):
            rows = np.append(rows, np.arange(first, len(x)))
            graph = graph.grown(x[torch.from_numpy(rows)])
        order = np.argsort(rows)
        return csr_matrix(graph.smoothing()[order][:, order])

    def _of_pool(self, x: Tensor) -> tuple[NeighbourGraph, NDArray[np.int64]]:
        """The graph of points ``x [N, D]``, and the row of ``x`` for each of its nodes, ``[N]``."""
        hashes = point_hashes(x)
        place = {int(value): row for row, value in enumerate(hashes)}
        graph, rows = self._graph, np.arange(len(x))
        if graph is None or not graph.can_grow_to(hashes):
            graph = NeighbourGraph.of(x)
        else:
            known = np.array([place[int(value)] for value in graph.hashes])
            rows = np.append(known, np.setdiff1d(rows, known))
            if len(known) < len(rows):
                graph = graph.grown(x[torch.from_numpy(rows)])
        if graph is not self._graph:
            self._graph = graph
            self._write(graph)
        return graph, rows

    def _read(self) -> NeighbourGraph | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            graph = NeighbourGraph(**read_arrays(self._path, _ARRAYS))
            return graph if graph.is_sound() else None
        except FileFormatError:
            return None

    def _write(self, graph: NeighbourGraph) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(self._path, {name: getattr(graph, name) for name in _ARRAYS})


def point_hashes(x: Tensor) -> NDArray[np.uint64]:
    """Unique numbers ``[N]`` that identify points by their features ``x [N, D]``.

    They depend only on the features, except that points with the same features are numbered in
    order.
    """
    rows = np.ascontiguousarray(x.numpy(), np.float32)
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    hashes = np.frombuffer(digests, "<u8").astype(np.uint64)
    _, group, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    earlier = np.arange(len(x)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    hashes[order] += earlier.astype(np.uint64)
    return hashes


def _unit(x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return torch.nn.functional.normalize((x.float() - mean) / scale)


def _nearest(
    rows: Tensor, unit: Tensor, k: int, own: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Cosines ``[n, k]`` and positions ``[n, k]`` of the vectors nearest to each row.

    Args:
        rows: vectors of length 1, ``[n, D]``.
        unit: vectors of length 1 to search, ``[N, D]``.
        k: number of nearest vectors.
        own: position of each row in ``unit``, ``[n]``, to be left out; None if they are not in it.
    """
    cosines, places = [], []
    for block in torch.arange(len(rows)).split(max(1, _CHUNK // max(len(unit), 1))):
        cosine = rows[block] @ unit.T
        if own is not None:
            cosine[torch.arange(len(block)), own[block]] = -torch.inf
        top = cosine.topk(k)
        cosines.append(top.values)
        places.append(top.indices)
    return torch.cat(cosines), torch.cat(places)
