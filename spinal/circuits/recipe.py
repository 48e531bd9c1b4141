"""From features and labels to a trained circuit, with all settings in one `Recipe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from spinal.circuits.circuit import Circuit
from spinal.circuits.dgc import DGCSPN, buildable_axes
from spinal.circuits.random import RandomSPN
from spinal.circuits.training import FitSettings, fit
from spinal.errors import SpinalError


@dataclass(frozen=True)
class Recipe:
    """How a circuit is built, initialised and fitted; ``results/spn-recipe`` explains the defaults.

    Attributes:
        structure: ``dgc``, ``random`` for features without an order, or ``auto``: ``dgc`` if the
            features fit on a grid, else ``random``.
        leaves: components of each leaf region.
        sums: channels of the sum layers of a `DGCSPN`.
        depth: see `RandomSPN`, whose sums have ``sums[0]`` channels.
        repetitions: see `RandomSPN`.
        scale: see `NormalLeaves`.
        learn_scale: see `NormalLeaves`.
        min_scale: see `NormalLeaves`.
        units: ``common`` for one standard deviation for all variables, ``each`` for one per
            variable; see `NormalLeaves.standardise`.
        start: ``classes`` (see `Circuit.start_from_classes`), ``data`` (leaves at the means of
            equal parts of each variable) or ``random``.
        location_spread: standard deviation of random initial locations.
        weight_spread: standard deviation of the initial logits of sum weights.
        balance: a point has weight ``n^-balance``, where n is the number of points of its class. 0
            weights all points equally, 1 all classes. The frequencies of classes among few or
            selected labels say little about their true frequencies. Values above 1 compensate for
            the features of the network, which already favour frequent classes.
        leaf_dropout: default rate at which `Circuit.log_posterior` drops variables under ``masks``.
        fit: settings of the fit.
    """

    structure: Literal["auto", "dgc", "random"] = "auto"
    leaves: int = 16
    sums: tuple[int, ...] = (16, 32, 32, 64)
    depth: int | None = None
    repetitions: int = 8
    scale: float = 7.0
    learn_scale: bool = False
    min_scale: float = 0.1
    units: Literal["common", "each"] = "common"
    start: Literal["classes", "data", "random"] = "classes"
    location_spread: float = 1.0
    weight_spread: float = 0.5
    balance: float = 2.0
    leaf_dropout: float = 0.3
    fit: FitSettings = field(default_factory=FitSettings)

    def __post_init__(self) -> None:
        for name, choices in (
            ("structure", ("auto", "dgc", "random")),
            ("units", ("common", "each")),
            ("start", ("classes", "data", "random")),
        ):
            if getattr(self, name) not in choices:
                raise SpinalError(
                    f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}"
                )
        sizes = (self.leaves, self.repetitions, *self.sums)
        if not self.sums or not all(n >= 1 for n in sizes):
            raise SpinalError(
                f"leaves, sums and repetitions must be 1 or more: got leaves={self.leaves}, "
                f"sums={self.sums}, repetitions={self.repetitions}"
            )
        if len(self.sums) < 2 and self.structure != "random":
            raise SpinalError(
                f"sums={self.sums}: the paper's structure needs two layers of sums or more; or set "
                "structure to 'random'"
            )
        if not 0 <= self.leaf_dropout < 1:
            raise SpinalError(f"leaf_dropout must be from 0 to below 1, not {self.leaf_dropout}")

    def build(
        self,
        n_features: int,
        n_classes: int,
        *,
        grid: tuple[int, int] | None = None,
        categories: Sequence[int] = (),
        seed: int = 0,
    ) -> Circuit:
        """A randomly initialised circuit.

        Args:
            n_features: D, the number of variables.
            n_classes: C, the number of classes.
            grid: (H, W) of the features, for a `DGCSPN`.
            categories: ``sizes`` of `MixedLeaves`; empty for no categories.
            seed: for the random initialisation.
        """
        shared: dict[str, Any] = {
            "leaves": self.leaves, "scale": self.scale, "learn_scale": self.learn_scale,
            "min_scale": self.min_scale, "location_spread": self.location_spread,
            "weight_spread": self.weight_spread, "leaf_dropout": self.leaf_dropout,
            "categories": categories, "seed": seed,
        }  # fmt: skip
        structure = self.structure
        if structure == "auto":
            largest = buildable_axes(len(self.sums))[-1] ** 2
            structure = "dgc" if n_features <= largest else "random"
        if structure == "dgc":
            return DGCSPN(
                grid, n_classes, n_features=n_features, sums=self.sums, pad=True, **shared
            )
        return RandomSPN(
            n_features, n_classes, depth=self.depth, repetitions=self.repetitions,
            sums=self.sums[0], **shared,
        )  # fmt: skip


#: The paper's settings: five sum layers, Adam at 0.08 for 650 epochs, cross-entropy alone, a leaf
#: dropout of 0.3. It does not mention leaf scales; the library that it used fixes them at 1.
PAPER = Recipe(
    structure="dgc",
    sums=(16, 32, 32, 64, 64),
    scale=1.0,
    units="each",
    start="random",
    weight_spread=1.0,
    balance=0.0,
    fit=FitSettings(
        generative=0.0, learning_rate=0.08, schedule="constant", epochs=650, leaf_dropout=0.3
    ),
)

#: The same for MNIST, where the paper's leaf dropout was 0.05.
PAPER_MNIST = replace(PAPER, leaf_dropout=0.05, fit=replace(PAPER.fit, leaf_dropout=0.05))

RECIPES: dict[str, Recipe] = {
    "default": Recipe(), "paper": PAPER, "paper-mnist": PAPER_MNIST,
}  # fmt: skip


def train_circuit(
    z: Tensor,
    y: Tensor,
    n_classes: int,
    recipe: Recipe | None = None,
    *,
    grid: tuple[int, int] | None = None,
    weights: Tensor | None = None,
    categories: Sequence[int] = (),
    validation: tuple[Tensor, Tensor] | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    on_step: Callable[[int, int, float], None] | None = None,
) -> Circuit:
    """Build a circuit for these features and fit it.

    Args:
        z: features ``[N, D]``; NaN is missing.
        y: classes ``[N]``, from 0 to ``n_classes - 1``.
        n_classes: C, the number of classes.
        recipe: all settings; by default, ``Recipe()``.
        grid: (H, W) of the features, for a `DGCSPN`.
        weights: weight of each point, ``[N]``.
        categories: ``sizes`` of `MixedLeaves`; empty for no categories.
        validation: features and classes for early stopping, see `fit`.
        seed: for the initialisation, the batches and the dropped variables.
        dtype: type of the parameters.
        on_step: called with the step, the number of steps and the loss.
    """
    recipe = recipe or Recipe()
    circuit = recipe.build(z.size(1), n_classes, grid=grid, categories=categories, seed=seed)
    circuit.to(z.device, dtype)
    weights = torch.ones_like(z[:, 0]) if weights is None else weights
    counts = torch.zeros(n_classes, dtype=weights.dtype, device=z.device).index_add(0, y, weights)
    weights = weights * counts[y] ** -recipe.balance
    circuit.standardise(z, weights, common=recipe.units == "common")
    if recipe.start == "data":
        circuit.start_from_data(z)
    elif recipe.start == "classes":
        generator = torch.Generator().manual_seed(seed)
        circuit.start_from_classes(z, y, weights, generator=generator)
    prior = torch.zeros_like(counts).index_add(0, y, weights)
    circuit.set_prior(torch.where(counts > 0, prior / prior.sum(), 1 / (len(z) + n_classes)))
    fit(
        circuit,
        z,
        y,
        recipe.fit,
        weights=weights,
        validation=validation,
        seed=seed,
        on_step=on_step,
    )
    return circuit
