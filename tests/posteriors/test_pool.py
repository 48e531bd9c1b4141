"""Learning from the pool, against brute force and eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.posteriors.pool import neighbour_graph, pool_targets, spread_labels


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense_graph(features: Tensor, neighbours: int) -> np.ndarray:
    z = (features - features.mean(0)).numpy()
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
def test_the_graph_is_that_of_a_search_through_all_pairs(neighbours, monkeypatch):
    from spinal.posteriors import pool

    features = draw(40, 4) + 5
    expected = dense_graph(features, neighbours)
    graph = neighbour_graph(features, neighbours)
    np.testing.assert_allclose(graph.toarray(), expected, atol=1e-5)
    monkeypatch.setattr(pool, "_CHUNK", 100)
    np.testing.assert_allclose(neighbour_graph(features, neighbours).toarray(), expected, atol=1e-5)


def test_a_graph_of_few_points_joins_all_of_them():
    graph = neighbour_graph(torch.tensor([[1.0, 0.0], [1.1, 0.1], [-1.0, 0.0]]), 10)
    assert graph.shape == (3, 3)
    assert graph[0, 1] > 0
    assert graph[0, 2] == 0  # the cosine is below 0


def test_labels_spread_as_the_powers_of_the_graph_say():
    graph = neighbour_graph(draw(30, 3), 4)
    labelled, labels = torch.tensor([0, 5, 9]), torch.tensor([1, 0, 1])
    spread = spread_labels(graph, labelled, labels, 3, reach=0.9, steps=20)
    values, vectors = np.linalg.eigh(graph.toarray())
    start = np.zeros((30, 3))
    start[[0, 9], 1], start[5, 0] = 0.5, 1
    # The sum of (1 - a) (a S)^i for i < 20, and (a S)^20, by eigenvalues.
    powers = (0.9 * values) ** 20
    flow = (1 - 0.9) * (1 - powers) / (1 - 0.9 * values) + powers
    expected = vectors @ (flow[:, None] * (vectors.T @ start))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(spread.numpy(), expected, atol=1e-7)


def test_points_that_no_label_reaches_are_left_open():
    group = torch.arange(20) % 2
    features = 10 * torch.eye(2)[group] + 0.01 * draw(20, 2).float()
    spread = spread_labels(neighbour_graph(features, 3), torch.tensor([0]), torch.tensor([2]), 4)
    torch.testing.assert_close(spread[1::2], torch.full((10, 4), 0.25).double())
    torch.testing.assert_close(spread[0::2, 2], torch.ones(10).double())


def test_targets_are_sharp_and_heavy_where_opinions_agree():
    model = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]]).double()
    graph = torch.tensor([[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]]).double()
    targets, weights = pool_targets(model.log(), graph)
    product = model * graph
    torch.testing.assert_close(targets, product**2 / (product**2).sum(1, keepdim=True))
    q = product.sqrt() / product.sqrt().sum(1, keepdim=True)
    torch.testing.assert_close(weights, 0.3 * (2 * q.amax(1) - 1) ** 2)
    torch.testing.assert_close(weights[1:], torch.zeros(2).double())


def test_contradiction_counts_nothing_even_between_certainties():
    model = torch.tensor([[0.0, -torch.inf], [0.0, -torch.inf]])
    spread = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    targets, weights = pool_targets(model, spread)
    torch.testing.assert_close(targets, torch.tensor([[0.5, 0.5], [1.0, 0.0]]).double())
    torch.testing.assert_close(weights, torch.tensor([0.0, 0.3]).double())
