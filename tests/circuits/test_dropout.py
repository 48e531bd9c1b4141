"""Closed-form dropout uncertainty against Monte Carlo, where it is exact and where it is not."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import spearmanr

from spinal.circuits import RandomSPN
from spinal.circuits.circuit import Circuit
from spinal.circuits.dropout import root_moments
from spinal.errors import SpinalError
from tests.circuits.conftest import trained_on_blobs

DRAWS = 200_000


def tree() -> Circuit:
    """Two variables, one product, one sum below it for each: no node has two parents."""
    spn = RandomSPN(2, 2, depth=1, repetitions=1, leaves=3, sums=1, seed=0)
    with torch.no_grad():
        spn.layers[0].sum.logits.copy_(torch.tensor([[0.5, 0.0, 1.0], [0.0, 1.0, 0.3]])[:, None])
    return spn.double()


def leaf_values(spn: Circuit, z: torch.Tensor) -> torch.Tensor:
    """Densities of the leaves over the mean density of their variable: ``[regions, N, K]``."""
    mean, scale = spn.leaves.location[:, None], spn.leaves.scale()[:, None]
    z = z[:, spn.leaves.variables.flatten()]
    values = torch.distributions.Normal(mean, scale).log_prob(z.T[..., None]).exp().detach()
    return values / values.mean(2, keepdim=True)


@pytest.mark.parametrize(("on", "dropout"), [("sums", 0.2), ("leaves", 0.3)])
def test_moments_are_exact_in_a_tree_with_independent_masks(on: str, dropout: float) -> None:
    """The variance of the root, simulated edge by edge with masks drawn by hand."""
    spn = tree()
    z = torch.tensor([[0.4, -0.8]], dtype=torch.float64)
    x = leaf_values(spn, z)[:, 0]  # [2 regions, 3 leaves]
    w = spn.layers[0].sum.weights()[..., 0].detach()
    torch.manual_seed(0)
    kept = torch.rand(DRAWS, 2, 3) >= dropout
    if on == "sums":
        sums = (w * x * kept / (1 - dropout)).sum(2)
    else:
        sums = (w * torch.where(kept, x, 1.0)).sum(2)
    root = sums.prod(1)
    mean, variance = root_moments(spn, z, dropout, on)
    expected = root.var() / root.mean() ** 2
    torch.testing.assert_close(variance / mean**2, expected.expand(1, 2), rtol=0.02, atol=0)


def test_posterior_moments_match_monte_carlo_for_independent_classes() -> None:
    """One variable, a root over leaves of its own for each class: the delta method on its own."""
    spn = RandomSPN(1, 2, depth=0, repetitions=1, leaves=2, scale=2.0, weight_floor=0).double()
    with torch.no_grad():
        spn.leaves.location.copy_(torch.tensor([[0.0, 1.0]]))
        spn.layers[0].sum.logits.copy_(torch.tensor([[30.0, -30.0], [-30.0, 30.0]])[:, None])
    z = torch.tensor([[0.6]], dtype=torch.float64)
    mean, variance = spn.dropout_posterior(z, 0.02, on="leaves")
    torch.manual_seed(0)
    kept = torch.rand(DRAWS, 2) >= 0.02
    values = torch.where(kept, leaf_values(spn, z)[0, 0], 1.0)
    posterior = values / values.sum(1, keepdim=True)
    torch.testing.assert_close(mean[0], posterior.mean(0), atol=0.005, rtol=0)
    ratio = variance[0] / posterior.var(0)
    assert ((ratio > 0.5) & (ratio < 2)).all()


def test_without_dropout_there_is_no_variance(spn: Circuit, points: torch.Tensor) -> None:
    for on in ("leaves", "sums"):
        mean, variance = spn.dropout_posterior(points, 0.0, on=on)
        torch.testing.assert_close(mean, spn.log_posterior(points).exp().detach())
        assert variance.abs().max() < 1e-12


def test_closed_form_ranks_points_as_masks_do_though_it_is_too_small() -> None:
    """In a trained circuit nodes share their masks, and vary together: not so in closed form."""
    spn, z = trained_on_blobs()
    mean, variance = spn.dropout_posterior(z, 0.2)
    generator = torch.Generator().manual_seed(1)
    samples = spn.log_posterior(z, masks=300, dropout=0.2, generator=generator).exp().detach()
    assert (mean - samples.mean(1)).abs().mean() < 0.01
    closed, sampled = variance.sum(1), samples.var(1).sum(1)
    rank = spearmanr(closed, sampled).statistic
    assert rank > 0.8
    assert (closed < sampled).float().mean() > 0.9


def test_impossible_rates_are_refused(spn: Circuit, points: torch.Tensor) -> None:
    with pytest.raises(SpinalError, match="leaves"):
        spn.dropout_posterior(points, 0.1, on="roots")
    with pytest.raises(SpinalError, match=r"\[0, 1\)"):
        spn.dropout_posterior(points, 1.0)
