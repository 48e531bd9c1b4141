"""The paper's idea: a sum-product network on the features of the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from spinal.circuits import Circuit, Recipe, train_circuit
from spinal.errors import SpinalError
from spinal.posteriors.posterior import FitContext, Posterior, View


@dataclass(frozen=True)
class _Values:
    """What `Circuit.class_values` gave for some features."""

    features: Tensor
    by_class: Tensor
    common: Tensor


@dataclass
class SPN(Posterior):
    r"""``p(y | x) = p(y | z)`` by a circuit trained on the labelled features ``z``.

    Attributes:
        recipe: how the circuit is built and fitted.
        grid: on which the features lie (the paper: 16 x 8, 16 x 32); the smallest that fits, if
            None.
        masks: K, how many sets of dropped features `sample` draws.
        dropout: the rate of those drops; the recipe's ``leaf_dropout``, if None.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples", "log_density", "moments"})

    recipe: Recipe = field(default_factory=Recipe)
    grid: tuple[int, int] | None = None
    masks: int = 20
    dropout: float | None = None
    circuit: Circuit | None = field(default=None, init=False, repr=False)
    _last: _Values | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.masks < 1:
            raise SpinalError(f"masks must be 1 or more, not {self.masks}")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise SpinalError(f"dropout must be from 0 to below 1, not {self.dropout}")

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        self.circuit = train_circuit(
            labelled.features,
            labels,
            context.n_classes,
            self.recipe,
            grid=self.grid,
            seed=context.seed,
            on_step=context.on_step,
        )
        self._last = None

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The exact posterior of the circuit, ``log_probs_N_C``."""
        return self._values(view).by_class.log_softmax(1)

    @torch.no_grad()
    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """Posteriors given the features that are left when others are dropped at random."""
        return self._fitted().log_posterior(
            view.features,
            masks=self.masks if k is None else k,
            dropout=self.dropout,
            generator=torch.Generator().manual_seed(seed),
        )

    def log_density(self, view: View) -> Tensor:
        values = self._values(view)
        return (values.by_class.logsumexp(1) + values.common).to(values.by_class.dtype)

    def moments(self, view: View) -> Tensor:
        """Over features dropped as ``masks`` drop them, roughly: see `spinal.circuits.dropout`."""
        return torch.stack(self._fitted().dropout_posterior(view.features, self.dropout), dim=1)

    def save(self, folder: Path) -> None:
        self._fitted().save(folder / "spn.safetensors")

    def load(self, folder: Path) -> None:
        self.circuit = Circuit.load(folder / "spn.safetensors")
        self._last = None

    def _values(self, view: View) -> _Values:
        """Posterior and density come from one pass of the circuit, which is kept for both."""
        if self._last is None or self._last.features is not view.features:
            with torch.no_grad():
                self._last = _Values(view.features, *self._fitted().class_values(view.features))
        return self._last

    def _fitted(self) -> Circuit:
        if self.circuit is None:
            raise RuntimeError("the SPN has not been fitted yet")
        return self.circuit
