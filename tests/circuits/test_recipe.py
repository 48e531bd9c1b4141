"""From features and labels to a trained circuit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from spinal.circuits import DGCSPN, RECIPES, FitSettings, RandomSPN, Recipe, train_circuit
from spinal.errors import SpinalError

QUICK = Recipe(sums=(8, 8), fit=FitSettings(steps=60))


def clouds(
    counts: list[int], features: int = 12, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    centre = 2 * torch.randn(len(counts), features, generator=torch.Generator().manual_seed(9))
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    return centre[y] + torch.randn(len(y), features, generator=generator), y


def test_the_start_from_classes_classifies_before_any_training() -> None:
    z, y = clouds([30, 30, 30])
    circuit = train_circuit(z, y, 3, replace(QUICK, fit=FitSettings(steps=1, learning_rate=1e-6)))
    held, truth = clouds([30, 30, 30], seed=1)
    assert (circuit.log_posterior(held).argmax(1) == truth).float().mean() > 0.9


def test_a_class_without_labels_keeps_laplace_s_share() -> None:
    z, y = clouds([20, 20, 0, 20])
    posterior = train_circuit(z, y, 4, QUICK).log_posterior(z).exp().detach()
    share = 1 / (60 + 4)
    assert share / 3 < posterior[:, 2].mean() < 3 * share
    assert (posterior.argmax(1) == y).float().mean() > 0.9


def test_balance_makes_up_for_rare_classes() -> None:
    z, y = clouds([60, 5], features=6)
    held, truth = clouds([200, 200], features=6, seed=1)
    rare = truth == 1
    found = [
        (train_circuit(z, y, 2, replace(QUICK, balance=b)).log_posterior(held)[rare, 1])
        .exp()
        .mean()
        for b in (0.0, 1.0)
    ]
    assert found[1] > found[0]


def test_units_are_each_its_own_or_common() -> None:
    z, y = clouds([30, 30])
    z = z * torch.logspace(0, 2, 12)
    each = train_circuit(z, y, 2, replace(QUICK, units="each")).leaves.stretch
    common = train_circuit(z, y, 2, replace(QUICK, units="common")).leaves.stretch
    assert each.max() / each.min() > 50
    assert common.std() == 0


def test_structures_follow_the_features() -> None:
    assert isinstance(Recipe().build(128, 10), DGCSPN)
    assert isinstance(Recipe().build(2000, 10), RandomSPN)
    assert isinstance(Recipe(structure="random").build(10, 2), RandomSPN)
    assert Recipe().build(128, 10, grid=(16, 8)).config()["grid"] == [16, 8]
    with pytest.raises(SpinalError, match="'tree'"):
        Recipe(structure="tree").build(10, 2)  # type: ignore[arg-type]


def test_the_paper_s_recipe_is_a_preset() -> None:
    paper = RECIPES["paper"]
    assert paper.sums == (16, 32, 32, 64, 64)
    assert (paper.fit.learning_rate, paper.fit.epochs, paper.fit.generative) == (0.08, 650, 0.0)


def test_the_same_seed_gives_the_same_circuit() -> None:
    z, y = clouds([20, 20])
    first, same, other = (train_circuit(z, y, 2, QUICK, seed=s).log_posterior(z) for s in (0, 0, 1))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_missing_features_are_no_obstacle() -> None:
    z, y = clouds([30, 30, 30])
    z[torch.rand(z.shape, generator=torch.Generator().manual_seed(0)) < 0.3] = torch.nan
    z[:, 4] = torch.nan
    circuit = train_circuit(z, y, 3, QUICK)
    assert (circuit.log_posterior(z).argmax(1) == y).float().mean() > 0.9


@pytest.mark.parametrize(
    "wrong",
    [
        {"units": "x"},
        {"start": "x"},
        {"structure": "x"},
        {"leaves": 0},
        {"sums": (16, 0)},
        {"sums": ()},
        {"leaf_dropout": -1},
        {"leaf_dropout": 1.0},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpinalError, match=next(iter(wrong))):
        Recipe(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaf_dropout": 1.5},
        {"steps": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
    ],
)
def test_fits_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpinalError, match=next(iter(wrong))):
        FitSettings(**wrong)


@pytest.mark.parametrize("wrong", [{"masks": 0}, {"masks": 2, "dropout": 2.0}])
def test_masks_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpinalError, match="masks"):
        Recipe().build(8, 2).log_posterior(torch.zeros(3, 8), **wrong)


def test_features_beyond_all_numbers_are_refused() -> None:
    circuit = Recipe().build(8, 2)
    z = torch.zeros(3, 8, dtype=torch.float64)
    z[1, 2] = 1e200
    with torch.no_grad(), pytest.raises(SpinalError, match="too large"):
        circuit.log_posterior(z)
