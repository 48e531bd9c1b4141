"""The paper's idea: a sum-product network on the features of the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from spinal.circuits import Circuit, Recipe, train_circuit
from spinal.posteriors.posterior import Posterior, View


@dataclass
class SPN(Posterior):
    """``p(y | x) = p(y | z)`` by a circuit trained on the labelled features ``z``.

    Attributes:
        recipe: how the circuit is built and fitted.
        grid: on which the features lie (the paper: 16 x 8, 16 x 32); the smallest that fits, if
            not given.
        masks: K, how many sets of dropped features `log_probs` samples; with None, K = 1, the
            exact posterior, or 20 for acquisition functions that compare samples (BALD).
        dropout: the rate of those drops; the recipe's ``leaf_dropout``, if not given.
    """

    recipe: Recipe = field(default_factory=Recipe)
    grid: tuple[int, int] | None = None
    masks: int | None = None
    dropout: float | None = None
    circuit: Circuit | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        labelled: View,
        labels: Tensor,
        classes: int,
        *,
        seed: int,
        on_step: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self.circuit = train_circuit(
            labelled.features,
            labels,
            classes,
            self.recipe,
            grid=self.grid,
            seed=seed,
            on_step=on_step,
        )

    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        circuit = self._fitted()
        with torch.no_grad():
            if self.masks is None or not samples:
                return circuit.log_posterior(view.features).unsqueeze(1)
            generator = torch.Generator().manual_seed(seed)
            return circuit.log_posterior(
                view.features, masks=self.masks, dropout=self.dropout, generator=generator
            )

    def compare_samples(self) -> None:
        if self.masks is None:
            self.masks = 20

    def log_density(self, view: View) -> Tensor:
        with torch.no_grad():
            return self._fitted().log_prob(view.features)

    def save(self, folder: Path) -> None:
        self._fitted().save(folder / "spn.safetensors")

    def load(self, folder: Path) -> None:
        self.circuit = Circuit.load(folder / "spn.safetensors")

    def _fitted(self) -> Circuit:
        if self.circuit is None:
            raise RuntimeError("the SPN has not been fitted yet")
        return self.circuit
