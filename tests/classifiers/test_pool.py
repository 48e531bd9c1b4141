"""Learning from the pool, against linear systems and repeated points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.classifiers import held_out_labels, held_out_loss, held_out_parts
from spinal.classifiers.blend import fit_on_vectors
from spinal.classifiers.gaussian import Moments
from spinal.classifiers.graph import GraphCache, NeighbourGraph
from spinal.classifiers.pool import (
    PoolPoints,
    fit_gaussian_to_pool,
    pool_targets,
    spread_labels,
)
from tests.classifiers.data import clouds


def pool_of(x: Tensor, n: int) -> PoolPoints:
    """The first n points are labelled."""
    return PoolPoints(x, torch.arange(n), GraphCache().smoothing(x))


def test_spreading_solves_a_linear_system() -> None:
    smoothing = NeighbourGraph.of(clouds(30, 3)[0], 4).smoothing()
    labelled, labels = torch.tensor([0, 5, 9]), torch.tensor([1, 0, 1])
    spread = spread_labels(smoothing, labelled, labels, 3, reach=0.9, steps=300)
    start = np.zeros((30, 3))
    start[[0, 9], 1], start[5, 0] = 0.5, 1
    expected = np.linalg.solve(np.eye(30) - 0.9 * smoothing.toarray(), start)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(spread.numpy(), expected, atol=1e-7)


def test_points_that_no_label_reaches_are_left_open() -> None:
    group = torch.arange(20) % 2
    x = 10 * torch.eye(2)[group] + 0.01 * torch.randn(
        20, 2, generator=torch.Generator().manual_seed(0)
    )
    smoothing = NeighbourGraph.of(x, 3).smoothing()
    spread = spread_labels(smoothing, torch.tensor([0]), torch.tensor([2]), 4)
    torch.testing.assert_close(spread[1::2], torch.full((10, 4), 0.25).double())
    torch.testing.assert_close(spread[0::2, 2], torch.ones(10).double())


def test_targets_are_sharp_and_heavy_where_opinions_agree() -> None:
    model = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]]).double()
    graph = torch.tensor([[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]]).double()
    targets, weights = pool_targets(model.log(), graph)
    product = model * graph
    torch.testing.assert_close(targets, product**2 / (product**2).sum(1, keepdim=True))
    q = product.sqrt() / product.sqrt().sum(1, keepdim=True)
    torch.testing.assert_close(weights, 0.3 * (2 * q.amax(1) - 1) ** 2)
    torch.testing.assert_close(weights[1:], torch.zeros(2).double())


def test_contradiction_counts_nothing_even_between_certainties() -> None:
    model = torch.tensor([[0.0, -torch.inf], [0.0, -torch.inf]])
    spread = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    targets, weights = pool_targets(model, spread)
    torch.testing.assert_close(targets, torch.tensor([[0.5, 0.5], [1.0, 0.0]]).double())
    torch.testing.assert_close(weights, torch.tensor([0.0, 0.3]).double())


def test_whole_weights_are_repeated_points() -> None:
    x, _ = clouds(25, 3, 3)
    times = torch.randint(0, 4, (25, 3), generator=torch.Generator().manual_seed(0))
    times[:, 0] += 1
    moments = Moments.of(x, times.double())
    point, label = (times > 0).nonzero().repeat_interleave(times[times > 0], 0).T
    repeated = Moments.of(x[point], torch.eye(3).double()[label])
    torch.testing.assert_close(moments.counts, repeated.counts)
    torch.testing.assert_close(moments.centre, repeated.centre)
    torch.testing.assert_close(moments.offsets, repeated.offsets)
    torch.testing.assert_close(moments.spread, repeated.spread)
    z, means = x[point], torch.stack([x[point][label == c].mean(0) for c in range(3)])
    within = z - means[label]
    covariance = moments.axes * moments.spread @ moments.axes.T
    torch.testing.assert_close(covariance, within.T @ within / len(z))


def test_the_circuit_is_better_with_the_pool() -> None:
    x, y = clouds(600, 20, 3, apart=0.6)
    new_x, new_y = clouds(2000, 20, 3, apart=0.6, seed=1)
    few, labels = x[:15], y[:15]
    alone = fit_on_vectors(few, labels, 3, x[15:])
    taught = fit_on_vectors(few, labels, 3, x[15:], pool_of(x, 15))
    assert taught.from_pool
    assert alone.from_pool is None
    losses = [float(held_out_loss(m.log_probs(new_x), new_y)) for m in (taught, alone)]
    assert losses[0] < losses[1] - 0.1
    right = [
        float((m.log_probs(new_x).argmax(1) == new_y).double().mean()) for m in (taught, alone)
    ]
    assert right[0] > right[1] + 0.03


def test_a_pool_that_has_nothing_to_do_with_the_labels_is_refused() -> None:
    """Classes are told apart by one feature; neighbours, by all others."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 12, generator=generator).double()
    group = torch.randint(2, (500,), generator=generator)
    x[:, 1:] += 6 * group[:, None]
    y = (x[:, 0] > 0).long()
    blend = fit_on_vectors(x[:60], y[:60], 2, None, pool_of(x, 60))
    alone = fit_on_vectors(x[:60], y[:60], 2)
    assert blend.from_pool is not None
    assert not blend.from_pool
    torch.testing.assert_close(blend.log_probs(x), alone.log_probs(x))


def test_held_out_predictions_depend_neither_on_the_labels_nor_on_the_points() -> None:
    x, y = clouds(120, 5, 3)
    parts = held_out_parts(x[:30], y[:30], 5, 0)
    _, held = fit_gaussian_to_pool(pool_of(x, 30), y[:30], 3, parts[:1], "each")
    changed = torch.where(parts[0].held, (y[:30] + 1) % 3, y[:30])
    # Settings are chosen by the held-out labels, but here there is one setting only.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "SHRINKAGES": (1.0,),
            "PSEUDO_POINTS": (1.0,),
            "SHARPNESS": (0.5,),
        }.items():
            patch.setattr(f"spinal.classifiers.gaussian.{name}", value)
        results = [
            fit_gaussian_to_pool(pool_of(x, 30), labels, 3, parts[:1], "each")[1]
            for labels in (y[:30], changed)
        ]
    torch.testing.assert_close(*results)
    assert held.shape == (len(held_out_labels(y[:30], parts[:1])), 3)


def test_a_class_without_labels_is_not_learnt_from_guesses() -> None:
    x, y = clouds(200, 5, 3)
    labels = y[:30].clamp_max(1)
    parts = held_out_parts(x[:30], labels, 5, 0)
    model, _ = fit_gaussian_to_pool(pool_of(x, 30), labels, 4, parts, "common")
    assert model.log_probs(x).isfinite().all()
    assert model.log_probs(x).exp()[:, 2:].max() < 0.5
