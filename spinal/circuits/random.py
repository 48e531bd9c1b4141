"""Random SPNs, for features without a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spinal.circuits.circuit import Circuit
from spinal.circuits.mixed_leaves import make_leaves
from spinal.circuits.products import Pairs, Product
from spinal.circuits.sums import WEIGHT_FLOOR, stack_layers
from spinal.errors import StructureError


class RandomSPN(Circuit):
    """A random tensorised SPN (RAT-SPN, Peharz et al., 2019), with depthwise products.

    Each repetition splits the variables recursively into random halves. Regions at the bottom hold
    factorised normals. A region is the product of its two halves, channel by channel, and sums mix
    the channels. The roots mix the repetitions.

    Args:
        n_features: D, the number of variables.
        n_classes: C, the number of classes.
        depth: number of recursive splits, at most ``log2 D``; a repetition has ``2^depth`` leaf
            regions.
        repetitions: number of independent random splits.
        leaves: components of each leaf region.
        sums: channels of every sum layer.
        scale: see `NormalLeaves`.
        learn_scale: see `NormalLeaves`.
        min_scale: see `NormalLeaves`.
        location_spread: see `NormalLeaves`.
        weight_spread: see ``spread`` of `Sum`.
        weight_floor: see ``floor`` of `Sum`.
        leaf_dropout: see `Circuit`.
        categories: ``sizes`` of `MixedLeaves`; empty for no categories.
        seed: for the splits and the random initialisation.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int = 10,
        *,
        depth: int | None = None,
        repetitions: int = 8,
        leaves: int = 16,
        sums: int = 16,
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
        deepest = n_features.bit_length() - 1
        depth = min(4, deepest) if depth is None else depth
        if n_features < 1 or repetitions < 1 or not 0 <= depth <= deepest:
            raise StructureError(
                f"{n_features} features can be split 0 to {max(deepest, 0)} times, in 1 or more "
                f"repetitions; got depth={depth}, repetitions={repetitions}"
            )
        self._config = {
            "n_features": n_features, "n_classes": n_classes, "depth": depth,
            "repetitions": repetitions,
            "leaves": leaves, "sums": sums, "scale": scale, "learn_scale": learn_scale,
            "min_scale": min_scale, "location_spread": location_spread,
            "weight_spread": weight_spread, "weight_floor": weight_floor,
            "leaf_dropout": leaf_dropout, "categories": list(categories), "seed": seed,
        }  # fmt: skip
        generator = torch.Generator().manual_seed(seed)
        shuffled = [torch.randperm(n_features, generator=generator) for _ in range(repetitions)]
        regions = torch.stack([_cut(order, 2**depth) for order in shuffled])
        leaf_layer = make_leaves(
            regions, n_features, leaves, categories, scale=scale, learn_scale=learn_scale,
            min_scale=min_scale, location_spread=location_spread, generator=generator,
        )  # fmt: skip
        products = [Product(), *(Product(columns=Pairs("valid")) for _ in range(depth))]
        layers = stack_layers(
            leaf_layer.cells, products, [leaves, *[sums] * depth, n_classes], floor=weight_floor,
            spread=weight_spread, generator=generator,
        )  # fmt: skip
        super().__init__(leaf_layer, layers, leaf_dropout=leaf_dropout)

    def config(self) -> dict[str, Any]:
        return dict(self._config)


def _cut(order: torch.Tensor, parts: int) -> torch.Tensor:
    """Cut a permutation into nearly equal parts ``[parts, V]``, padded with -1.

    For a random permutation, this is the same as splitting it recursively into random halves.
    """
    rows = order.tensor_split(parts)
    return torch.stack(
        [torch.nn.functional.pad(r, (0, len(rows[0]) - len(r)), value=-1) for r in rows]
    )
