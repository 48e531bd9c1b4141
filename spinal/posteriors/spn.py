"""The paper's idea: a sum-product network on the features of the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from spinal.circuits import Circuit, Recipe, train_circuit
from spinal.posteriors.posterior import Posterior, View


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
            not given.
        masks: K, how many sets of dropped features `log_probs` samples; with None, K = 1, the
            exact posterior, or 20 for acquisition functions that compare samples (BALD).
        dropout: the rate of those drops; the recipe's ``leaf_dropout``, if not given.
        sharpness: :math:`\beta`. Acquisition functions that see the exact posterior are shown
            :math:`p^\beta`, normalised anew; predictions are not touched. A posterior that is
            honest about few labels is spread over many classes nearly everywhere, and its entropy
            is highest where points look like nothing in particular. Sharpened, it is highest where
            two classes compete. ``results/picking`` has the curves.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"log_probs", "log_density", "moments"})

    recipe: Recipe = field(default_factory=Recipe)
    grid: tuple[int, int] | None = None
    masks: int | None = None
    dropout: float | None = None
    sharpness: float = 30.0
    circuit: Circuit | None = field(default=None, init=False, repr=False)
    _last: _Values | None = field(default=None, init=False, repr=False)

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
        self._last = None

    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        circuit = self._fitted()
        if self.masks is None or not samples:
            sharpness = self.sharpness if samples else 1.0
            return (sharpness * self._values(view).by_class).log_softmax(1).unsqueeze(1)
        with torch.no_grad():
            generator = torch.Generator().manual_seed(seed)
            return circuit.log_posterior(
                view.features, masks=self.masks, dropout=self.dropout, generator=generator
            )

    def compare_samples(self) -> None:
        if self.masks is None:
            self.masks = 20

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
        """One pass of the circuit gives posterior and density: kept until other points come."""
        if self._last is None or self._last.features is not view.features:
            with torch.no_grad():
                self._last = _Values(view.features, *self._fitted().class_values(view.features))
        return self._last

    def _fitted(self) -> Circuit:
        if self.circuit is None:
            raise RuntimeError("the SPN has not been fitted yet")
        return self.circuit
