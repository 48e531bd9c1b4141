"""Independent classes: a mixture of absent and present for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.classifiers.blend import fit_on_vectors
from spinal.classifiers.graph import NeighbourGraph
from spinal.classifiers.multi import UNKNOWN, MultiBlend, fit_multi, main_directions
from spinal.classifiers.pool import PoolPoints
from spinal.classifiers.priors import label_frequencies


def make_points(n: int = 120, d: int = 12, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points, and three classes of different frequency that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    y = x[:, :3] + 0.3 * rng.normal(size=(n, 3)) > np.array([0.0, 0.6, 1.2])
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.int64))


def test_each_class_is_a_mixture_of_its_own() -> None:
    x, y = make_points()
    model = fit_multi(x[:80], y[:80], x[80:])
    (kind,) = {blend.gaussian.coordinates.units.kind for blend in model.blends}
    z = x.double() - x.double().mean(0)
    for c in range(3):
        alone = fit_on_vectors(
            z[:80], y[:80, c], 2, z[80:], with_trees=False, kinds=(kind,)
        ).with_prior(label_frequencies(torch.bincount(y[:80, c], minlength=2)))
        expected = alone.log_probs(z[80:])[:, 1].exp()
        torch.testing.assert_close(model.probs(x[80:])[:, c], expected)
    right = (model.probs(x[80:]) > 0.5) == (y[80:] == 1)
    assert right.double().mean() > 0.85


def make_directions(n: int = 150, d: int = 10) -> tuple[Tensor, Tensor]:
    """Points of random length, and three classes of which two depend on their direction."""
    rng = np.random.default_rng(0)
    way = rng.normal(size=(n, d))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    x = 5 + way * rng.lognormal(sigma=1.5, size=(n, 1))
    noise = rng.random(n) < 0.5  # most balanced, and of no use to choose units by
    y = np.stack([noise, way[:, 0] > 0.2, way[:, 1] > 0.2], 1)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.int64))


def kinds_of(model: MultiBlend) -> set[str]:
    return {blend.gaussian.coordinates.units.kind for blend in model.blends}


def test_shorter_vectors_mean_the_same_where_directions_decide() -> None:
    x, y = make_directions()
    model = fit_multi(x[:100], y[:100], x[100:])
    assert kinds_of(model) == {"direction"}
    torch.testing.assert_close(model.centre, x.mean(0))
    shorter = model.centre + 0.1 * (x - model.centre)
    torch.testing.assert_close(model.probs(shorter), model.probs(x))


def test_lengths_count_where_they_say_more() -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(150, 3)))
    model = fit_multi(x, (x > 0.8).long())
    assert kinds_of(model) == {"each"}
    assert ((model.probs(x) > 0.5) == (x > 0.8)).double().mean() > 0.95


def test_the_density_is_the_mean_of_log_densities() -> None:
    x, y = make_points(60)
    model = fit_multi(x, y)
    each = []
    for blend in model.blends:
        u = blend.gaussian.variables(x.double() - model.centre)
        # By enumeration of both classes: prior times density.
        by_class, common = blend.gaussian.circuit.class_values(u)
        each.append((by_class.exp().sum(1)).log() + common)
    torch.testing.assert_close(model.log_density(x), torch.stack(each).mean(0))
    far = model.log_density(x + 100)
    assert bool((far < model.log_density(x)).all())


def test_a_class_is_learnt_from_the_answers_that_say_something_of_it() -> None:
    x, y = make_points()
    partly = y.clone()
    partly[30:, 2] = UNKNOWN
    model, few = fit_multi(x, partly), fit_multi(x[:30], y[:30], x[30:])
    whole = fit_multi(x, y)
    torch.testing.assert_close(model.probs(x)[:, :2], whole.probs(x)[:, :2])
    assert int(model.blends[2].logistic.counts.sum()) == 30  # type: ignore[union-attr]
    assert torch.corrcoef(torch.stack([model.probs(x)[:, 2], few.probs(x)[:, 2]]))[0, 1] > 0.8


@pytest.mark.parametrize("said", [0, 1, UNKNOWN])
def test_a_class_that_is_always_or_never_there(said: int) -> None:
    x, y = make_points(20)
    y[:, 1] = said
    probs = fit_multi(x, y).probs(x)
    assert bool(probs.isfinite().all())
    assert bool(((probs[:, 1] > 0.5) == (said == 1)).all())


def test_it_learns_from_the_pool_where_that_helps_held_out_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = torch.from_numpy((rng.random((400, 2)) < 0.5).astype(np.int64))
    centres = rng.normal(size=(2, 20)) * 1.2
    x = torch.from_numpy((y.numpy() @ centres + rng.normal(size=(400, 20))).astype(np.float32))
    pool = PoolPoints(x, torch.arange(16), NeighbourGraph.of(x).smoothing())
    model = fit_multi(x[:16], y[:16], x[16:], pool)
    assert model.from_pool == any(bool(blend.from_pool) for blend in model.blends)
    assert ((model.probs(x[16:]) > 0.5) == (y[16:] == 1)).double().mean() > 0.85
    assert sum(model.shares().values()) == pytest.approx(1)


def test_main_directions_keep_lengths_and_angles() -> None:
    rng = np.random.default_rng(0)
    low = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 40)) + 3
    x = torch.from_numpy(low)
    axes = main_directions(x, 8)
    assert axes.shape == (40, 8)
    z = x @ axes
    torch.testing.assert_close(z @ z.T, x @ x.T)  # of rank 7 with the mean
    assert torch.equal(main_directions(x[:, :5], 8), torch.eye(5, dtype=torch.float64))


def test_it_is_the_same_after_it_was_saved(tmp_path: Path) -> None:
    x, y = make_points(60)
    model = fit_multi(x, y)
    model.save(tmp_path)
    again = MultiBlend.load(tmp_path)
    assert torch.equal(again.probs(x), model.probs(x))
    assert torch.equal(again.log_density(x), model.log_density(x))
