"""Fitting: EM against another implementation, the mixed loss, stopping, weights, seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from spinal.circuits import DGCSPN, RandomSPN
from spinal.circuits.training import FitSettings, fit
from spinal.errors import SpinalError


def blobs(n: int = 90, features: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    centre = 3 * torch.randn(3, features, generator=torch.Generator().manual_seed(1))
    return centre[y] + torch.randn(n, features, generator=generator), y


def small(**arguments: object) -> RandomSPN:
    return RandomSPN(6, 3, depth=1, repetitions=2, leaves=4, sums=4, **arguments)  # type: ignore[arg-type]


def accuracy(spn: RandomSPN, z: torch.Tensor, y: torch.Tensor) -> float:
    return float((spn.log_posterior(z).argmax(1) == y).float().mean())


@pytest.mark.parametrize("generative", [0.0, 0.5, 1.0])
def test_every_mix_of_losses_learns(generative: float) -> None:
    z, y = blobs()
    spn = small(scale=1.5)
    spn.standardise(z)
    report = fit(spn, z, y, FitSettings(generative=generative, steps=60, learning_rate=0.06))
    assert report.losses[-1] < report.losses[0]
    assert accuracy(spn, *blobs(seed=5)) > 0.9


def test_em_on_a_flat_circuit_is_em_of_a_gaussian_mixture() -> None:
    """One region, one class: a mixture of diagonal normals, as scikit-learn fits it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 2)) + 4 * rng.integers(0, 2, size=(200, 1))
    start = np.array([[0.0, 1.0], [3.0, 2.0], [5.0, 5.0]])
    peer = GaussianMixture(
        3, covariance_type="diag", weights_init=np.full(3, 1 / 3), means_init=start,
        precisions_init=np.ones((3, 2)), max_iter=12, tol=0, reg_covar=0,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="converge"):
        peer.fit(z)
    spn = RandomSPN(
        2, 1, depth=0, repetitions=1, leaves=3, learn_scale=True, min_scale=1e-3, weight_spread=0
    ).double()
    with torch.no_grad():
        order = spn.leaves.variables.flatten()
        spn.leaves.location.copy_(torch.tensor(start.T)[order])
    settings = FitSettings(generative=1, optimiser="em", learning_rate=1, steps=12, batch_size=None)
    fit(spn, torch.tensor(z), torch.zeros(200), settings)
    np.testing.assert_allclose(
        spn.leaves.location.detach()[order.argsort()].T, peer.means_, atol=1e-5
    )
    np.testing.assert_allclose(
        spn.layers[0].sum.weights().detach()[0, :, 0], peer.weights_, atol=1e-5
    )
    deviations = spn.leaves.scale().detach()[order.argsort()].T
    np.testing.assert_allclose(deviations**2, peer.covariances_, rtol=1e-4)


@pytest.mark.parametrize("learn_scale", [False, True])
def test_em_never_lowers_the_likelihood(learn_scale: bool) -> None:
    z, y = blobs(features=16)
    z[torch.rand(z.shape, generator=torch.Generator().manual_seed(0)) < 0.2] = torch.nan
    spn = DGCSPN((4, 4), 3, leaves=3, sums=(3, 4, 5), learn_scale=learn_scale).double()
    spn.standardise(z)
    settings = FitSettings(generative=1, optimiser="em", learning_rate=1, steps=25, batch_size=None)
    losses = np.array(fit(spn, z, y, settings).losses)
    assert (np.diff(losses) < 1e-9).all()
    assert losses[-1] < losses[0] - 0.05


def test_a_weight_of_two_is_a_point_twice() -> None:
    z, y = blobs(30)
    settings = FitSettings(steps=10, batch_size=None, generative=0.5)
    weights = 1.0 + (torch.arange(30) < 10)
    weighted, doubled = small().double(), small().double()
    fit(weighted, z, y, settings, weights=weights)
    fit(doubled, torch.cat([z, z[:10]]), torch.cat([y, y[:10]]), settings)
    torch.testing.assert_close(weighted(z.double()), doubled(z.double()), rtol=1e-6, atol=1e-6)


def test_the_same_seed_gives_the_same_fit() -> None:
    z, y = blobs()
    settings = FitSettings(steps=20, batch_size=16, leaf_dropout=0.3)
    states = []
    for seed in (0, 0, 1):
        spn = small()
        fit(spn, z, y, settings, seed=seed)
        states.append(spn.leaves.location.detach())
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_fitting_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    fit(small(leaf_dropout=0.2), *blobs(), FitSettings(steps=3))
    assert torch.equal(before, torch.get_rng_state())


def test_validation_keeps_the_best_and_patience_stops() -> None:
    z, y = blobs(12)
    held_z, held_y = blobs(60, seed=3)
    spn = small(scale=0.3)
    settings = FitSettings(
        steps=400, generative=0, learning_rate=0.2, schedule="constant", patience=5, check_every=5
    )
    report = fit(spn, z, y, settings, validation=(held_z, held_y))
    assert report.stopped_early
    assert len(report.losses) < 400
    best = min(report.validation_losses)
    assert report.validation_losses[-1] > best
    now = torch.nn.functional.nll_loss(spn.log_posterior(held_z), held_y)
    assert now.item() == pytest.approx(best, abs=1e-4)


def test_the_last_step_is_checked_too() -> None:
    z, y = blobs(12)
    settings = FitSettings(steps=7, check_every=5)
    report = fit(small(), z, y, settings, validation=blobs(60, seed=3))
    assert len(report.validation_losses) == 2


def test_patience_stops_where_the_training_loss_levels_off() -> None:
    z, y = blobs()
    settings = FitSettings(steps=5000, schedule="constant", patience=3, tolerance=1e-2)
    assert fit(small(), z, y, settings).stopped_early


def test_epochs_count_passes_over_the_data() -> None:
    z, y = blobs(30)
    report = fit(small(), z, y, FitSettings(epochs=4, batch_size=8))
    assert len(report.losses) == 4 * 4


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    fit(small(), *blobs(), FitSettings(steps=3), on_step=lambda i, n, _: calls.append((i, n)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_what_cannot_be_fitted_is_refused() -> None:
    z, y = blobs(6)
    for bad_z, bad_y, message in [
        (z, y + 1, "from 0 to 2"), (z[:0], y[:0], "as many"), (z, y[:3], "as many"),
        (z / 0, y, "finite"),
    ]:  # fmt: skip
        with pytest.raises(SpinalError, match=message):
            fit(small(), bad_z, bad_y)
    with pytest.raises(SpinalError, match="EM"):
        FitSettings(optimiser="em")
    with pytest.raises(SpinalError, match="0 to 1"):
        FitSettings(generative=2)


def test_em_without_a_floor_is_refused() -> None:
    spn = DGCSPN(grid=(4, 4), n_classes=2, weight_floor=0)
    settings = FitSettings(generative=1, optimiser="em", steps=1)
    with pytest.raises(SpinalError, match="EM needs a floor"):
        fit(spn, torch.randn(4, 16), torch.tensor([0, 1, 0, 1]), settings)


def test_locations_start_at_the_means_of_equal_parts() -> None:
    spn = RandomSPN(2, 1, depth=0, repetitions=1, leaves=4)
    z = torch.stack([torch.arange(8.0), torch.arange(8.0).flip(0) * 10], 1)
    z[::2, 1] = torch.nan  # 70, 50, 30, 10 stay... every other one is missing
    spn.start_from_data(z)
    by_variable = spn.leaves.location.detach()[spn.leaves.variables.flatten().argsort()]
    torch.testing.assert_close(by_variable[0], torch.tensor([0.5, 2.5, 4.5, 6.5]))
    torch.testing.assert_close(by_variable[1], torch.tensor([0.0, 20.0, 40.0, 60.0]))


def test_with_fewer_points_than_components_the_parts_share_them() -> None:
    spn = RandomSPN(1, 1, depth=0, repetitions=1, leaves=4)
    spn.start_from_data(torch.tensor([[0.0], [3.0]]))
    torch.testing.assert_close(spn.leaves.location.detach(), torch.tensor([[0.0, 0.0, 3.0, 3.0]]))


def test_units_change_the_density_by_their_jacobian() -> None:
    z, _ = blobs()
    spn = small()
    plain = spn(z / 10)
    with torch.no_grad():
        spn.leaves.stretch.fill_(10)
    torch.testing.assert_close(spn(z), plain - 6 * np.log(10), rtol=0, atol=1e-4)


def test_a_feature_that_never_varies_is_not_blown_up() -> None:
    z, y = blobs()
    z[:, 2] = 5.0
    spn = small()
    spn.standardise(z)
    fit(spn, z, y, FitSettings(steps=20))
    moved = z.clone()
    moved[:, 2] += 1e-4
    assert (spn.log_posterior(moved) - spn.log_posterior(z)).abs().max() < 0.1
