"""The graph of neighbours against a search through all pairs, and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.classifiers import graph
from spinal.classifiers.graph import GraphCache, NeighbourGraph, point_hashes


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)) + 5


def dense_smoothing(x: Tensor, neighbours: int, mean: Tensor | None = None) -> NDArray:
    z = (x.double() - (x.double().mean(0) if mean is None else mean.double())).numpy()
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = z @ z.T
    weights = np.zeros_like(cosine)
    for i in range(len(z)):
        others = sorted((j for j in range(len(z)) if j != i), key=lambda j: -cosine[i, j])
        for j in others[:neighbours]:
            weights[i, j] = weights[j, i] = max(0, cosine[i, j]) ** 3
    degree = weights.sum(1)
    return weights / np.sqrt(np.outer(degree, degree))


@pytest.mark.parametrize("neighbours", [3, 10])
def test_the_graph_is_that_of_a_search_through_all_pairs(
    neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw(40, 4)
    expected = dense_smoothing(x, neighbours)
    smoothing = NeighbourGraph.of(x, neighbours).smoothing()
    np.testing.assert_allclose(smoothing.toarray(), expected, atol=1e-5)
    monkeypatch.setattr(graph, "_CHUNK", 100)
    smoothing = NeighbourGraph.of(x, neighbours).smoothing()
    np.testing.assert_allclose(smoothing.toarray(), expected, atol=1e-5)


def test_a_graph_of_few_points_joins_all_of_them() -> None:
    smoothing = NeighbourGraph.of(torch.tensor([[1.0, 0.0], [1.1, 0.1], [-1.0, 0.0]])).smoothing()
    assert smoothing.shape == (3, 3)
    assert smoothing[0, 1] > 0
    assert smoothing[0, 2] == 0  # the cosine is below 0


def test_features_in_other_units_give_the_same_graph() -> None:
    x = draw(40, 5)
    stretched = x * torch.tensor([1e-4, 1.0, 3.0, 1e3, 1e5])
    expected = dense_smoothing(x / x.std(0, correction=0), 10)
    np.testing.assert_allclose(
        NeighbourGraph.of(stretched).smoothing().toarray(), expected, atol=1e-4
    )


@pytest.mark.parametrize("n", [31, 45])
def test_a_graph_grows_to_that_of_all_points(n: int) -> None:
    x = draw(n, 4)
    first = NeighbourGraph.of(x[:30])
    expected = dense_smoothing(x, 10, x[:30].double().mean(0))
    np.testing.assert_allclose(first.grown(x).smoothing().toarray(), expected, atol=1e-5)


def test_a_kept_graph_is_used_again_and_grows(tmp_path: Path) -> None:
    x = draw(60, 4)
    GraphCache(tmp_path).smoothing(x[:50])
    written = (tmp_path / "neighbours.npz").read_bytes()
    shuffled = x[:50].flip(0)
    smoothing = GraphCache(tmp_path).smoothing(shuffled)
    assert (tmp_path / "neighbours.npz").read_bytes() == written
    np.testing.assert_allclose(smoothing.toarray(), dense_smoothing(shuffled, 10), atol=1e-5)
    # Among others, and in another order; the mean is still that of the first points.
    more = x[torch.randperm(60, generator=torch.Generator().manual_seed(1))]
    expected = dense_smoothing(more, 10, x[:50].double().mean(0))
    np.testing.assert_allclose(GraphCache(tmp_path).smoothing(more).toarray(), expected, atol=1e-5)
    assert len(np.load(tmp_path / "neighbours.npz")["hashes"]) == 60


def test_points_can_be_joined_for_one_time(tmp_path: Path) -> None:
    x = draw(60, 4)
    cache = GraphCache(tmp_path)
    for n in (60, 53, 60):
        expected = dense_smoothing(x[:n], 10, x[:50].double().mean(0))
        np.testing.assert_allclose(cache.smoothing(x[:n], 50).toarray(), expected, atol=1e-5)
    assert len(np.load(tmp_path / "neighbours.npz")["hashes"]) == 50


@pytest.mark.parametrize("change", ["fewer", "other features", "many more", "damage", "nonsense"])
def test_a_graph_of_other_points_and_a_damaged_one_are_made_anew(
    tmp_path: Path, change: str
) -> None:
    x = draw(80, 4)
    GraphCache(tmp_path).smoothing(x[:50])
    path = tmp_path / "neighbours.npz"
    points = {"fewer": x[:40], "other features": draw(50, 6), "many more": x}.get(change, x[:50])
    if change == "damage":
        path.write_bytes(path.read_bytes()[:300])
    if change == "nonsense":
        arrays = dict(np.load(path))
        np.savez(path, **arrays | {"nearest": arrays["nearest"] + 1000})
    smoothing = GraphCache(tmp_path).smoothing(points)
    np.testing.assert_allclose(smoothing.toarray(), dense_smoothing(points, 10), atol=1e-5)


def test_equal_points_have_different_hashes_and_others_keep_theirs() -> None:
    x = draw(6, 3)
    repeated = torch.cat([x, x[2:3], x[2:3]])
    hashes = point_hashes(repeated)
    assert len(set(hashes.tolist())) == 8
    np.testing.assert_array_equal(hashes[:6], point_hashes(x))
    assert GraphCache().smoothing(repeated).shape == (8, 8)
