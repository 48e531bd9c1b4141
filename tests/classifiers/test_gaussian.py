"""The circuit in closed form against the normal densities that it stands for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.stats import spearmanr
from torch.distributions import MultivariateNormal

from spinal.acquisition.scores import bald
from spinal.acquisition.variance import bald_from_moments
from spinal.classifiers import fit_gaussian, held_out_labels, held_out_loss, held_out_parts
from spinal.classifiers.gaussian import Moments, Settings
from spinal.classifiers.priors import add_one
from spinal.classifiers.units import Coordinates, Units
from tests.classifiers.data import clouds


def test_it_is_one_normal_for_each_class() -> None:
    x, y = clouds(90, 4, 3)
    shrinkage, pseudo_points, sharpness = 0.5, 2.0, 0.4
    units = Units.fit(x, "each")
    coordinates, counts = Coordinates.fit(x, units), torch.bincount(y).double()
    moments = Moments.of(coordinates(x), torch.eye(3).double()[y])
    settings = Settings(shrinkage, pseudo_points, sharpness)
    model = moments.as_circuit(coordinates, settings, add_one(counts))
    directly = moments.log_probs(coordinates(x), settings, add_one(counts))
    torch.testing.assert_close(directly, model.log_probs(x), atol=1e-3, rtol=1e-3)
    z = units(x)
    means = torch.stack([z[y == c].mean(0) for c in range(3)])
    within = (z - means[y]).T @ (z - means[y])
    sigma = (within + shrinkage * within.trace() / 90 * torch.eye(4)) / (90 + shrinkage * 4)
    centre = means.mean(0)
    shrunk = centre + (counts / (counts + pseudo_points))[:, None] * (means - centre)
    joint = torch.stack([
        MultivariateNormal(mean, sigma / sharpness).log_prob(z) for mean in shrunk
    ], 1) + ((counts + 1) / (counts + 1).sum()).log()  # fmt: skip
    torch.testing.assert_close(model.log_probs(x), joint.log_softmax(1), atol=1e-4, rtol=1e-4)
    # The density is the same but for the volume of the map to the circuit's variables.
    difference = model.circuit.log_prob(model.variables(x)) - joint.logsumexp(1)
    torch.testing.assert_close(difference, difference[:1].expand(90), atol=1e-4, rtol=0)


def test_its_circuit_is_normalised() -> None:
    x, y = clouds(40, 1, 2)
    model, _ = fit_gaussian(x, y, 2, held_out_parts(x, y, 5, 0))
    grid = torch.linspace(-200, 200, 40001).double()[:, None]
    total = model.circuit.log_prob(grid).exp().sum() * 0.01
    torch.testing.assert_close(total, torch.tensor(1.0).double(), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("n", "d"), [(30, 400), (12, 3), (2, 5), (1, 3)])
def test_few_points_are_enough(n: int, d: int) -> None:
    x, y = clouds(n, d, 4)
    model, held = fit_gaussian(x, y, 4, held_out_parts(x, y, 5, 0))
    log_probs = model.log_probs(clouds(20, d, 4, seed=1)[0])
    assert log_probs.isfinite().all()
    torch.testing.assert_close(log_probs.logsumexp(1), torch.zeros(20).double())
    assert len(held) == (n if n > 1 else 0)


def test_a_class_without_labels_is_possible() -> None:
    x, y = clouds(60, 4, 3)
    model, _ = fit_gaussian(x, y, 4, held_out_parts(x, y, 5, 0))
    assert (model.log_probs(x).exp()[:, 3] > 0).all()
    assert model.log_probs(x).exp()[:, 3].max() < 0.5


def test_its_confidence_is_right_for_new_points() -> None:
    x, y = clouds(60, 30, 3, apart=0.3)
    parts = held_out_parts(x, y, 5, 0)
    model, held = fit_gaussian(x, y, 3, parts)
    new_x, new_y = clouds(4000, 30, 3, apart=0.3, seed=5)
    log_probs = model.log_probs(new_x)
    confidence = log_probs.exp().amax(1).mean()
    accuracy = (log_probs.argmax(1) == new_y).double().mean()
    assert abs(float(confidence - accuracy)) < 0.12
    expected = held_out_loss(held, held_out_labels(y, parts))
    assert abs(float(held_out_loss(log_probs, new_y) - expected)) < 0.3


def test_samples_are_draws_from_the_posterior_of_the_class_means() -> None:
    """Mean and variance of a logit under the draws, against their closed forms.

    With v the mean of a class, R variables and a draw v + d, d of N(0, I / a), the evidence is
    u v - |v|^2 / 2 + (u - v) d - |d|^2 / 2. Its variance is |u - v|^2 / a + R / (2 a^2).
    """
    x, y = clouds(60, 4, 3)
    gaussian, _ = fit_gaussian(x, y, 3, held_out_parts(x, y, 5, 0))
    assert gaussian.chosen is not None
    assert gaussian.points is not None
    _, pseudo_points, beta = gaussian.chosen.tolist()
    counts = torch.bincount(y, minlength=3).double()
    torch.testing.assert_close(gaussian.points, counts + pseudo_points)

    u = gaussian.variables(x)[:5]
    z = (gaussian.coordinates(x) - gaussian.centre) @ gaussian.axes
    shrunk = counts / gaussian.points
    means = torch.stack([z[y == c].mean(0) for c in range(3)])
    means = shrunk[:, None] * (means - means.mean(0)) + means.mean(0)
    a, r = gaussian.points, u.shape[1]
    expected = u @ means.T - 0.5 * means.square().sum(1) - 0.5 * r / a
    variance = torch.cdist(u, means).square() / a + 0.5 * r / a**2

    k = 20_000
    drawn = gaussian.sample(u, k, torch.Generator().manual_seed(0))
    log_prior = gaussian.circuit.prior_logits.detach().log_softmax(0)
    odds = (drawn - log_prior)[..., :2] - (drawn - log_prior)[..., 2:]
    expected = beta * (expected[:, :2] - expected[:, 2:])
    variance = beta**2 * (variance[:, :2] + variance[:, 2:])
    error = (odds.mean(1) - expected).abs() / (variance / k).sqrt()
    assert error.max() < 4.5
    torch.testing.assert_close(odds.var(1), variance, rtol=0.06, atol=1e-9)


def test_moments_are_those_of_samples() -> None:
    """Closely with many points for each mean, by rank with few."""
    x, y = clouds(60, 4, 3)
    gaussian, _ = fit_gaussian(x, y, 3, held_out_parts(x, y, 5, 0))
    u = gaussian.variables(x)
    many = replace(gaussian, points=torch.full((3,), 2e3, dtype=torch.float64))
    mean, variance = many.moments(u)
    probs = many.sample(u, 20_000, torch.Generator().manual_seed(0)).exp()
    torch.testing.assert_close(mean, probs.mean(1), rtol=0, atol=1e-3)
    clear = variance > variance.max() / 20
    torch.testing.assert_close(probs.var(1)[clear], variance[clear], rtol=0.1, atol=0)

    few = replace(gaussian, points=torch.full((3,), 4.0, dtype=torch.float64))
    drawn = few.sample(u, 4000, torch.Generator().manual_seed(0))
    score = bald_from_moments(torch.stack(few.moments(u), 1))
    assert spearmanr(score, bald(drawn)).statistic > 0.9


def test_a_sample_is_the_same_model_for_every_point() -> None:
    x, y = clouds(60, 4, 3)
    gaussian, _ = fit_gaussian(x, y, 3, held_out_parts(x, y, 5, 0))
    u = gaussian.variables(x)
    both, some = (
        gaussian.sample(points, 7, torch.Generator().manual_seed(3)) for points in (u, u[10:20])
    )
    torch.testing.assert_close(both[10:20], some)
    torch.testing.assert_close(both.exp().sum(2), torch.ones(60, 7, dtype=torch.float64))


def test_with_many_points_samples_agree_with_the_circuit() -> None:
    x, y = clouds(60, 4, 3)
    gaussian, _ = fit_gaussian(x, y, 3, held_out_parts(x, y, 5, 0))
    sure = replace(gaussian, points=torch.full((3,), 1e12, dtype=torch.float64))
    drawn = sure.sample(sure.variables(x), 3, torch.Generator().manual_seed(0))
    for k in range(3):
        torch.testing.assert_close(
            drawn[:, k].exp(), gaussian.log_probs(x).exp(), rtol=1e-4, atol=1e-4
        )
