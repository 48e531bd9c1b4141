"""Densities, marginals and conditionals against enumeration, quadrature and importance sampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from spinal.circuits import DGCSPN, RandomSPN
from spinal.circuits.circuit import CHUNK, Circuit
from spinal.errors import SpinalError
from tests.circuits import mixtures
from tests.circuits.conftest import BUILDERS


def test_joint_density_is_that_of_the_explicit_mixture(spn: Circuit, points: torch.Tensor) -> None:
    expected = mixtures.log_joint(mixtures.expand(spn), points.numpy())
    np.testing.assert_allclose(spn(points).detach(), expected, atol=1e-9)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_joint_density_with_any_floor_is_that_of_the_explicit_mixture(floor: float) -> None:
    spn = DGCSPN((4, 2), 2, leaves=2, sums=(2, 2), strided=1, weight_floor=floor).double()
    z = torch.randn(4, 8, dtype=torch.float64)
    z[0, 3:] = torch.nan
    expected = mixtures.log_joint(mixtures.expand(spn), z.numpy())
    np.testing.assert_allclose(spn(z).detach(), expected, atol=1e-9)


def test_log_prob_and_posterior_follow_from_the_joint(spn: Circuit, points: torch.Tensor) -> None:
    joint = spn(points)
    torch.testing.assert_close(spn.log_prob(points), joint.logsumexp(1))
    torch.testing.assert_close(spn.log_posterior(points), joint - joint.logsumexp(1, keepdim=True))


@torch.no_grad()
def test_density_integrates_to_one_and_marginals_are_its_integrals() -> None:
    spn = RandomSPN(2, 2, depth=1, repetitions=2, leaves=3, sums=3, seed=3).double()
    coarse = torch.linspace(-9, 9, 361, dtype=torch.float64)
    density = spn.log_prob(torch.cartesian_prod(coarse, coarse)).exp().reshape(361, 361)
    total = torch.trapezoid(torch.trapezoid(density, coarse), coarse)
    assert float(total) == pytest.approx(1, abs=1e-6)
    steps = torch.linspace(-9, 9, 4001, dtype=torch.float64)
    for known, value in itertools.product((0, 1), (-1.3, 0.4)):
        line = torch.full((len(steps), 2), value, dtype=torch.float64)
        line[:, 1 - known] = steps
        integral = torch.trapezoid(spn.log_prob(line).exp(), steps)
        marginal = torch.full((1, 2), torch.nan, dtype=torch.float64)
        marginal[0, known] = value
        torch.testing.assert_close(spn.log_prob(marginal).exp()[0], integral, atol=1e-9, rtol=1e-6)


@torch.no_grad()
def test_density_of_the_paper_s_structure_integrates_to_one_by_importance_sampling() -> None:
    spn = DGCSPN((4, 4), 10, seed=0)
    spn.standardise(torch.randn(100, 16) * 3 + 1)
    wide = torch.distributions.Normal(spn.leaves.shift, 1.6 * spn.leaves.stretch)
    torch.manual_seed(0)
    z = wide.sample((20_000,))
    ratio = (spn.log_prob(z) - wide.log_prob(z).sum(1)).exp()
    error = ratio.std() / len(ratio) ** 0.5
    assert error < 0.05
    assert abs(ratio.mean() - 1) < 4 * error


def test_all_features_missing_leaves_the_prior(spn: Circuit) -> None:
    z = torch.full((1, spn.n_features), torch.nan, dtype=torch.float64)
    torch.testing.assert_close(spn(z)[0], spn.prior_logits.log_softmax(0))


def test_dropping_variables_is_marginalising_them(spn: Circuit, points: torch.Tensor) -> None:
    keep = torch.rand(points.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    torch.testing.assert_close(spn(points, keep), spn(points.where(keep, torch.nan)))


def test_masks_are_shared_by_all_points_and_repeatable(spn: Circuit, points: torch.Tensor) -> None:
    def draw(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return spn.log_posterior(points, masks=7, dropout=0.5, generator=generator)

    samples = draw(0)
    assert samples.shape == (len(points), 7, spn.n_classes)
    torch.testing.assert_close(samples, draw(0), rtol=0, atol=0)
    assert not torch.equal(samples, draw(1))
    kept = torch.rand((7, spn.n_features), generator=torch.Generator().manual_seed(0)) >= 0.5
    for k, row in enumerate(kept):
        expected = spn.log_posterior(points.where(row, torch.nan))
        torch.testing.assert_close(samples[:, k], expected)


def test_masks_without_dropout_are_the_plain_posterior(spn: Circuit, points: torch.Tensor) -> None:
    samples = spn.log_posterior(points, masks=3)
    torch.testing.assert_close(samples, spn.log_posterior(points)[:, None].expand(-1, 3, -1))


@pytest.mark.parametrize("kept", ["all", "for each point", "for all points"])
def test_pieces_do_not_depend_on_how_many_points_there_are(spn: Circuit, kept: str) -> None:
    z = torch.randn(CHUNK + 20, spn.n_features, dtype=torch.float64)
    keep = None if kept == "all" else torch.rand(z.shape) < 0.7
    if keep is not None and kept == "for all points":
        keep = keep[:1]
    for rows in (slice(CHUNK - 5, CHUNK + 5), slice(CHUNK + 15, None)):
        few = keep if keep is None or len(keep) == 1 else keep[rows]
        torch.testing.assert_close(spn(z, keep)[rows], spn(z[rows], few), rtol=0, atol=1e-12)
    assert spn(z[:0]).shape == (0, spn.n_classes)


def test_gradients_reach_every_parameter(spn: Circuit, points: torch.Tensor) -> None:
    spn(points[:3])[:, 0].sum().backward()
    for name, parameter in spn.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("name", ["dgc", "dgc-strided", "dgc-scales", "random", "random-flat"])
def test_gradients_are_the_finite_differences(name: str) -> None:
    assert_gradients_are_the_finite_differences(BUILDERS[name]().double())


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_gradients_are_the_finite_differences_with_any_floor(floor: float) -> None:
    spn = DGCSPN((4, 2), 2, leaves=2, sums=(2, 2), strided=1, weight_floor=floor)
    assert_gradients_are_the_finite_differences(spn.double())


def assert_gradients_are_the_finite_differences(spn: Circuit) -> None:
    z = torch.randn(3, spn.n_features, dtype=torch.float64, requires_grad=True)
    names, start = zip(*spn.named_parameters(), strict=True)

    def joint(z: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(spn, dict(zip(names, parameters, strict=True)), z)

    assert torch.autograd.gradcheck(joint, (z, *start))


def test_gradient_at_a_missing_feature_is_zero_not_nan(spn: Circuit, points: torch.Tensor) -> None:
    z = points.clone().requires_grad_()
    spn.log_posterior(z)[:, 0].sum().backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert (z.grad[points.isnan()] == 0).all()


def test_wrong_number_of_features_is_refused(spn: Circuit) -> None:
    with pytest.raises(SpinalError, match=rf"\[N, {spn.n_features}\]"):
        spn(torch.zeros(2, spn.n_features + 1))
