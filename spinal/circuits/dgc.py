"""Deep generalised convolutional SPNs: the structure of the paper, for features on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spinal.circuits.circuit import Circuit
from spinal.circuits.mixed_leaves import make_leaves
from spinal.circuits.products import Pairs, Product
from spinal.circuits.sums import WEIGHT_FLOOR, stack_layers
from spinal.errors import StructureError


class DGCSPN(Circuit):
    """A convolutional SPN with dilated products (van de Wolfshaar and Pronobis, 2020).

    Products of 2 x 2 cells with stride 2, each followed by local sums, shrink the grid. Products
    with dilation 1, 2, 4, ... then widen the scope of every cell, until each cell of the final
    product covers all variables. One root per class mixes these cells.

    With the defaults this is the network of the paper: 547,850 parameters on 16 x 8 features and
    977,930 on 16 x 32, for 10 classes.

    Args:
        grid: height and width on which the features lie, row by row.
        n_classes: C, the number of classes.
        n_features: D. Without ``grid``, the features lie on the smallest grid that fits. With fewer
            features than cells, the last cells are empty.
        leaves: components of each leaf region.
        sums: channels of each sum layer.
        strided: how many of the sum layers follow a product with stride 2, at least 1.
        pad: add empty cells to a grid that cannot be built, instead of raising an error.
        scale: see `NormalLeaves`.
        learn_scale: see `NormalLeaves`.
        min_scale: see `NormalLeaves`.
        location_spread: see `NormalLeaves`.
        weight_spread: see ``spread`` of `Sum`.
        weight_floor: see ``floor`` of `Sum`.
        leaf_dropout: see `Circuit`.
        categories: ``sizes`` of `MixedLeaves`; empty for no categories.
        seed: for the random initialisation.
    """

    def __init__(
        self,
        grid: tuple[int, int] | None = None,
        n_classes: int = 10,
        *,
        n_features: int | None = None,
        leaves: int = 16,
        sums: Sequence[int] = (16, 32, 32, 64, 64),
        strided: int = 2,
        pad: bool = False,
        scale: float = 1.0,
        learn_scale: bool = False,
        min_scale: float = 0.1,
        location_spread: float = 1.0,
        weight_spread: float = 1.0,
        weight_floor: float = WEIGHT_FLOOR,
        leaf_dropout: float = 0.0,
        categories: Sequence[int] = (),
        seed: int = 0,
    ) -> None:
        if not 1 <= strided <= len(sums):
            raise StructureError(f"strided must be from 1 to {len(sums)}, the number of sum layers")
        axes = buildable_axes(len(sums), strided)
        if grid is None:
            if n_features is None:
                raise StructureError("give the grid of the features, or how many there are")
            grid = smallest_grid(n_features, len(sums), strided)
        height, width = (int(n) for n in grid)
        n_features = height * width if n_features is None else n_features
        if not 1 <= n_features <= height * width:
            raise StructureError(f"{n_features} features do not fit on a {height} x {width} grid")
        variables = torch.arange(height * width).view(height, width)
        variables[variables >= n_features] = -1
        cells = _fit(height, axes, pad), _fit(width, axes, pad)
        self._config = {
            "grid": [height, width], "n_classes": n_classes, "n_features": n_features,
            "leaves": leaves,
            "sums": list(sums), "strided": strided, "pad": pad, "scale": scale,
            "learn_scale": learn_scale, "min_scale": min_scale, "location_spread": location_spread,
            "weight_spread": weight_spread, "weight_floor": weight_floor,
            "leaf_dropout": leaf_dropout, "categories": list(categories), "seed": seed,
        }  # fmt: skip

        padded = torch.full(cells, -1)
        padded[:height, :width] = variables
        # The first product, 2 x 2 with stride 2, is part of the leaf regions.
        regions = padded.unflatten(0, (-1, 2)).unflatten(2, (-1, 2)).transpose(1, 2).flatten(2)
        generator = torch.Generator().manual_seed(seed)
        leaf_layer = make_leaves(
            regions, n_features, leaves, categories, scale=scale, learn_scale=learn_scale,
            min_scale=min_scale, location_spread=location_spread, generator=generator,
        )  # fmt: skip
        dilated = len(sums) - strided
        products = [
            Product(),
            *(_both_axes("valid") for _ in range(strided - 1)),
            *(_both_axes("full", 2**i) for i in range(dilated)),
            _both_axes("final", 2**dilated),
        ]
        layers = stack_layers(
            leaf_layer.cells, products, [leaves, *sums, n_classes], floor=weight_floor,
            spread=weight_spread, generator=generator,
        )  # fmt: skip
        super().__init__(leaf_layer, layers, leaf_dropout=leaf_dropout)

    def config(self) -> dict[str, Any]:
        return dict(self._config)


def buildable_axes(sums: int = 5, strided: int = 2) -> list[int]:
    """The axis lengths on which a structure with this many sum layers can be built.

    Strides need a multiple of ``2^strided``; the final product spans twice its dilation.
    """
    step, dilation = 2**strided, 2 ** (sums - strided)
    return [step * n for n in range(1, dilation + 2)]


def smallest_grid(n_features: int, sums: int = 5, strided: int = 2) -> tuple[int, int]:
    """The grid with the fewest cells (then the most square, then the taller) that fits."""
    axes = buildable_axes(sums, strided)
    fitting = [(h, w) for h in axes for w in axes if h >= w and h * w >= n_features]
    if not fitting:
        raise StructureError(
            f"{n_features} features do not fit on the largest grid, {axes[-1]} x {axes[-1]}; "
            "use more sum layers, or a RandomSPN"
        )
    return min(fitting, key=lambda grid: (grid[0] * grid[1], grid[0] - grid[1]))


def _fit(n: int, axes: list[int], pad: bool) -> int:
    if n in axes:
        return n
    larger = [a for a in axes if a >= n]
    allowed = (
        f"an axis can have {', '.join(map(str, axes[:-1]))} or {axes[-1]} cells with these layers"
    )
    if not larger or n < 1:
        raise StructureError(f"an axis of {n} is too long: {allowed}; more sum layers allow more")
    if not pad:
        raise StructureError(f"an axis of {n} cannot be built: {allowed}; pad=True fills it up")
    return larger[0]


def _both_axes(kind: Any, dilation: int = 1) -> Product:
    return Product(Pairs(kind, dilation), Pairs(kind, dilation))
