"""float32 is safe: no NaN, no infinity, no lost digits."""

from __future__ import annotations

import pytest
import torch

from spinal.circuits import DGCSPN, RandomSPN
from spinal.circuits.circuit import Circuit
from spinal.circuits.sums import Sum, log_sum


def assert_finite(spn: Circuit, z: torch.Tensor) -> None:
    spn.zero_grad()
    z = z.clone().requires_grad_()
    posterior = spn.log_posterior(z)
    (posterior[:, 0].sum() + spn.log_prob(z).mean() / spn.n_features).backward()
    assert posterior.isfinite().all()
    assert spn.log_prob(z).isfinite().all()
    for name, parameter in [*spn.named_parameters(), ("input", z)]:
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all(), name


STRUCTURES = {
    "paper 16 x 8": lambda **kw: DGCSPN((16, 8), 10, **kw),
    "1,024 features": lambda **kw: DGCSPN((32, 32), 10, **kw),
    "random": lambda **kw: RandomSPN(128, 10, depth=5, **kw),
    "learned scales": lambda **kw: DGCSPN((16, 8), 10, learn_scale=True, **kw),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_finite_far_from_the_data(structure: str, size: float) -> None:
    spn = STRUCTURES[structure]()
    z = size * torch.randn(8, spn.n_features, generator=torch.Generator().manual_seed(0))
    z[1] = size
    z[2] = torch.nan
    z[3, ::2] = torch.nan
    assert_finite(spn, z)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("size", [30.0, 1e4])
def test_finite_with_weights_at_their_limits(structure: str, size: float) -> None:
    """All the weight of every sum on one child, each time another: the worst case for products."""
    spn = STRUCTURES[structure](weight_spread=size)
    assert_finite(spn, 10 * torch.randn(8, spn.n_features))


def test_float32_agrees_with_float64_far_out() -> None:
    spn = DGCSPN((16, 8), 10)
    z = 100 * torch.randn(16, 128, generator=torch.Generator().manual_seed(0))
    exact = spn.double()(z.double())
    torch.testing.assert_close(spn.float()(z).double(), exact, rtol=1e-6, atol=1e-3)


def test_classes_stay_apart_where_the_density_has_no_digits_left() -> None:
    """At 1e4 deviations log p(z) is near -1e10, where float32 counts in steps of 1,024."""
    spn = DGCSPN((16, 8), 10, location_spread=0.01, weight_spread=10)
    z = 1e4 * torch.randn(64, 128, generator=torch.Generator().manual_seed(0)).sign()
    assert (spn.log_prob(z) < -1e9).all()
    exact = spn.double().log_posterior(z.double())
    assert exact.std() > 1
    torch.testing.assert_close(spn.float().log_posterior(z).double(), exact, rtol=0, atol=0.02)


def test_a_small_weight_on_the_largest_child_does_not_underflow() -> None:
    """Shifting by the largest child and exponentiating would give -inf; the answer is -150."""
    p = torch.tensor([0.0, -200.0]).view(1, 1, 1, 2)
    below = Sum((1, 1), 2, 1, floor=0)
    with torch.no_grad():
        below.logits.copy_(torch.tensor([-150.0, 0.0]).view(1, 1, 2))
    assert log_sum(p, below).item() == pytest.approx(-150)


def test_sums_with_a_floor_are_those_over_every_edge() -> None:
    generator = torch.Generator().manual_seed(0)
    below = Sum((2, 3), 5, 4, spread=20, generator=generator)
    p = 50 * torch.randn(2, 3, 7, 5, generator=generator)
    p[0, 0, 0] = torch.tensor([0.0, -1e4, -1e4, -1e4, -1e4])  # the others underflow
    with torch.no_grad():
        edges = p.double().unsqueeze(-1) + below.log_weights().double().view(2, 3, 1, 5, 4)
        torch.testing.assert_close(
            log_sum(p, below).double(), edges.logsumexp(-2), rtol=1e-5, atol=1e-5
        )


def test_a_circuit_without_floor_keeps_what_underflows() -> None:
    spn = RandomSPN(1, 1, depth=0, repetitions=1, leaves=2, weight_floor=0)
    with torch.no_grad():
        spn.leaves.location.copy_(torch.tensor([[0.0, 20.0]]))  # log-densities 0 and -200, shifted
        spn.layers[0].sum.logits.copy_(torch.tensor([-150.0, 0.0]).view(1, 1, 2))
    z = torch.zeros(1, 1, requires_grad=True)
    value = spn.log_prob(z)
    assert value.item() == pytest.approx(-150 - 0.9189385, abs=1e-4)
    value.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_locations_far_from_zero_keep_their_digits() -> None:
    spn = RandomSPN(1, 1, depth=0, repetitions=1, leaves=2)
    with torch.no_grad():
        spn.leaves.location.copy_(torch.tensor([[10_000.0, 10_001.0]]))
    z = torch.tensor([[10_000.25]])
    torch.testing.assert_close(
        spn.log_prob(z).double(), spn.double().log_prob(z.double()), atol=1e-5, rtol=0
    )
