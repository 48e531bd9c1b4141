"""The circuit in closed form against the normal densities that it stands for."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

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
