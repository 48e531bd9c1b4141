"""Small circuits of every kind, for contract tests."""

from __future__ import annotations

import pytest
import torch

from spinal.circuits import DGCSPN, FitSettings, RandomSPN, Recipe, train_circuit
from spinal.circuits.circuit import Circuit

BUILDERS = {
    "dgc": lambda: DGCSPN((4, 2), 2, leaves=2, sums=(2, 2), strided=1, seed=1),
    "dgc-strided": lambda: DGCSPN((4, 4), 2, leaves=2, sums=(2, 2), strided=2, seed=2),
    "dgc-padded": lambda: DGCSPN((3, 2), 3, leaves=2, sums=(2, 2), strided=1, pad=True, seed=3),
    "dgc-few": lambda: DGCSPN(n_features=5, n_classes=2, leaves=2, sums=(2, 2), strided=1, seed=4),
    "dgc-scales": lambda: DGCSPN(
        (2, 4), 2, leaves=2, sums=(2, 2), strided=1, scale=0.7, learn_scale=True, seed=5
    ),
    "random": lambda: RandomSPN(5, 3, depth=2, repetitions=2, leaves=2, sums=2, seed=6),
    "random-flat": lambda: RandomSPN(3, 2, depth=0, repetitions=1, leaves=4, seed=7),
    "random-scales": lambda: RandomSPN(
        4, 2, depth=1, repetitions=3, leaves=2, sums=2, learn_scale=True, seed=8
    ),
}


def build(name: str) -> Circuit:
    """In float64, with a prior and units that are not the trivial ones."""
    spn = BUILDERS[name]().double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        spn.prior_logits.copy_(torch.randn(spn.n_classes, generator=generator))
        spn.leaves.shift.copy_(torch.randn(spn.n_features, generator=generator))
        spn.leaves.stretch.copy_(torch.rand(spn.n_features, generator=generator) + 0.5)
        if spn.leaves.learn_scale:
            spn.leaves.raw_scale.add_(
                0.3 * torch.randn(spn.leaves.raw_scale.shape, generator=generator)
            )
    return spn


@pytest.fixture(params=BUILDERS)
def spn(request: pytest.FixtureRequest) -> Circuit:
    return build(request.param)


@pytest.fixture
def points(spn: Circuit) -> torch.Tensor:
    """Six points ``[6, D]``: complete, partly missing, all missing."""
    generator = torch.Generator().manual_seed(1)
    z = 1.5 * torch.randn(6, spn.n_features, generator=generator, dtype=torch.float64)
    z[2:5][torch.rand(3, spn.n_features, generator=generator) < 0.5] = torch.nan
    z[5] = torch.nan
    return z


def trained_on_blobs() -> tuple[Circuit, torch.Tensor]:
    """A circuit that tells five overlapping clouds in 64 dimensions apart, and 50 new points."""
    generator = torch.Generator().manual_seed(0)
    centre = torch.randn(5, 64, generator=generator)
    y = torch.arange(200) % 5
    z = 0.6 * centre[y] + torch.randn(200, 64, generator=generator)
    new = 0.6 * centre[y[:50]] + torch.randn(50, 64, generator=generator)
    recipe = Recipe(sums=(16, 16, 16), fit=FitSettings(steps=80))
    return train_circuit(z, y, 5, recipe), new
