"""Every structure proves itself at construction, and what cannot be built is refused."""

from __future__ import annotations

import itertools

import pytest
import torch

from spinal.circuits import DGCSPN, Circuit, RandomSPN
from spinal.circuits.dgc import buildable_axes, smallest_grid
from spinal.circuits.leaves import NormalLeaves
from spinal.circuits.products import Pairs, Product
from spinal.circuits.sums import Layer, Sum
from spinal.errors import StructureError


@pytest.mark.parametrize(("grid", "parameters"), [((16, 8), 547_850), ((16, 32), 977_930)])
def test_the_paper_s_networks_have_the_paper_s_size(grid: tuple[int, int], parameters: int) -> None:
    spn = DGCSPN(grid=grid, n_classes=10)
    assert sum(p.numel() for p in spn.parameters()) == parameters


def axis_scopes(n: int) -> list[frozenset[int]]:
    """The cells below each output of the paper's products along one axis, by windows over sets."""
    cells = [frozenset({i}) for i in range(n)]
    for stride, offsets, size in [
        (2, (0, 1), n // 2), (2, (0, 1), n // 4), (1, (-1, 0), n // 4 + 1),
        (1, (-2, 0), n // 4 + 3), (1, (-4, 0), n // 4 + 7), (1, (0, 8), 8),
    ]:  # fmt: skip
        inputs = dict(enumerate(cells))
        below = [[inputs.get(stride * i + o, frozenset()) for o in offsets] for i in range(size)]
        for left, right in below:
            assert not left & right, "not decomposable"
        cells = [left | right for left, right in below]
    return cells


def test_every_grid_up_to_36_is_proved_or_refused() -> None:
    """Scopes on a grid are products of those on its axes, so axes decide."""
    accepted = buildable_axes()
    assert accepted == [4, 8, 12, 16, 20, 24, 28, 32, 36]
    for n in accepted:
        assert set(axis_scopes(n)) == {frozenset(range(n))}
    for height, width in itertools.product(range(2, 37), repeat=2):
        if height in accepted and width in accepted:
            DGCSPN((height, width), 2, leaves=1, sums=(1, 1, 1, 1, 1)).prove()
        else:
            with pytest.raises(StructureError, match="4, 8, 12, 16, 20, 24, 28, 32 or 36"):
                DGCSPN((height, width), 2, leaves=1, sums=(1, 1, 1, 1, 1))


def test_a_longer_axis_than_the_final_product_spans_is_refused() -> None:
    with pytest.raises(StructureError, match=r"too long.*more sum layers allow more"):
        DGCSPN((40, 8), 2, pad=True)
    assert DGCSPN((40, 8), 2, leaves=1, sums=(1,) * 6).n_features == 320


def test_padding_adds_variables_that_are_always_missing() -> None:
    spn = DGCSPN((7, 5), 3, pad=True)
    assert spn.n_features == 35
    assert spn.leaves.location.shape == (35, 16)
    assert spn(torch.zeros(1, 35)).isfinite().all()


@pytest.mark.parametrize(
    ("features", "grid"),
    [(1, (4, 4)), (17, (8, 4)), (64, (8, 8)), (100, (28, 4)), (128, (16, 8)), (512, (32, 16))],
)
def test_features_are_laid_on_the_smallest_grid(features: int, grid: tuple[int, int]) -> None:
    assert smallest_grid(features) == grid
    assert DGCSPN(n_features=features, n_classes=2, leaves=1, sums=(1,) * 5).n_features == features


def test_too_many_features_are_refused_with_advice() -> None:
    with pytest.raises(StructureError, match=r"36 x 36.*RandomSPN"):
        DGCSPN(n_features=1297, n_classes=2)


@pytest.mark.parametrize("arguments", [{"depth": 4}, {"depth": -1}, {"repetitions": 0}])
def test_impossible_random_structures_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(StructureError, match="0 to 3 times"):
        RandomSPN(10, 2, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"leaves": 0}, "components"), ({"sums": 0}, "channels"), ({"scale": float("nan")}, "scale")],
)
def test_layers_without_nodes_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(StructureError, match=message):
        RandomSPN(8, 2, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("features", [1, 2, 3, 7, 64, 100])
def test_random_structures_use_every_variable_once_in_a_repetition(features: int) -> None:
    spn = RandomSPN(features, 2, repetitions=3)
    for repetition in spn.leaves.variables:
        used = repetition[repetition >= 0].sort().values
        assert used.tolist() == list(range(features))


def assemble(variables: list[list[list[int]]], features: int, product: Product) -> Circuit:
    leaves = NormalLeaves(torch.tensor(variables), features, 2)
    root = Sum(product.grid(leaves.cells), 2, 3, over_cells=True)
    return Circuit(leaves, [Layer(product, root, leaves.cells)])


def test_a_product_of_overlapping_scopes_is_refused() -> None:
    with pytest.raises(StructureError, match=r"not decomposable: variables \[1\]"):
        assemble([[[0, 1], [1, 2]]], 3, Product(columns=Pairs("valid")))


def test_a_region_with_a_variable_twice_is_refused() -> None:
    with pytest.raises(StructureError, match="twice"):
        assemble([[[0, 0]]], 1, Product())


def test_a_root_over_different_scopes_is_refused() -> None:
    with pytest.raises(StructureError, match="not complete"):
        assemble([[[0], [1]]], 2, Product())


def test_a_variable_that_no_root_reaches_is_refused() -> None:
    with pytest.raises(StructureError, match=r"variables \[2\] are reached by no root"):
        assemble([[[0], [1]]], 3, Product(columns=Pairs("valid")))


def test_a_circuit_without_roots_is_refused() -> None:
    leaves = NormalLeaves(torch.tensor([[[0], [0]]]), 1, 2)
    with pytest.raises(StructureError, match="dense sum"):
        Circuit(leaves, [Layer(Product(), Sum((1, 2), 2, 3), (1, 2))])


def test_weights_are_distributions_and_can_be_set() -> None:
    local, dense = Sum((2, 3), 4, 5), Sum((2, 3), 4, 5, over_cells=True)
    torch.testing.assert_close(local.weights().sum(1), torch.ones(6, 5))
    torch.testing.assert_close(dense.weights().sum((0, 1)), torch.ones(5))
    for layer in (local, dense):
        wanted = layer.weights().detach().roll(1, dims=-1)
        layer.set_weights(wanted)
        torch.testing.assert_close(layer.weights(), wanted)
        torch.testing.assert_close(layer.log_weights().exp(), wanted)
    with pytest.raises(StructureError, match="add up to 1"):
        local.set_weights(torch.ones(6, 4, 5))
    with pytest.raises(StructureError, match="below the floor"):
        local.set_weights(torch.tensor([1.0, 0, 0, 0]).view(1, 4, 1).expand(6, 4, 5))


def test_structures_are_the_same_for_the_same_seed() -> None:
    for build in (lambda s: DGCSPN((4, 4), 2, seed=s), lambda s: RandomSPN(9, 2, seed=s)):
        first, same, other = build(0).state_dict(), build(0).state_dict(), build(1).state_dict()
        assert all(torch.equal(first[k], same[k]) for k in first)
        assert not torch.equal(first["leaves.location"], other["leaves.location"])
