"""The baseline: logistic regression on the same features."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from spinal import classifiers
from spinal.classifiers import fit_logistic, held_out_parts
from spinal.classifiers.blend import FOLDS
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.classifiers.units import Kind, plausible_kinds
from spinal.files import read_tensors, write_tensors
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.posteriors.vectors import (
    all_vectors,
    comparable_features,
    on_inputs,
    unlabelled_vectors,
    vector_batches,
)

_FILE, _FORMAT = "logistic.safetensors", "spinal.logistic/1"


@dataclass
class Logistic(Posterior):
    """Multinomial logistic regression; penalty and units are chosen by cross-validation.

    It works on the features of the network, or, if the network is one dense layer, on that layer's
    input.
    """

    model: classifiers.Logistic | None = field(default=None, init=False, repr=False)

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        x, unlabelled = all_vectors(labelled), unlabelled_vectors(labelled, context)
        parts = held_out_parts(x, labels, FOLDS, context.seed)
        reference = x if unlabelled is None else torch.cat([x, unlabelled])
        kinds: tuple[Kind, ...] = (
            plausible_kinds(reference) if on_inputs(labelled.network) else ("common",)
        )
        self.model, _ = fit_logistic(x, labels, context.n_classes, parts, kinds, reference)

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The log-probabilities of the regression, ``log_probs_N_C``."""
        model = self._fitted()
        said = [model.log_probs(x) for _, x in vector_batches(view)]
        return torch.cat(said).to(view.features.dtype)

    def features(self, view: View) -> Tensor:
        return comparable_features(view)

    def save(self, folder: Path) -> None:
        write_tensors(folder / _FILE, to_tensors(self._fitted()), _FORMAT, {})

    def load(self, folder: Path) -> None:
        _, tensors = read_tensors(folder / _FILE, _FORMAT)
        self.model = from_tensors(classifiers.Logistic, tensors, str(folder / _FILE))

    def _fitted(self) -> classifiers.Logistic:
        if self.model is None:
            raise RuntimeError("the regression has not been fitted yet")
        return self.model
