"""The softmax output of the network itself."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spinal.networks import predict_logits
from spinal.posteriors.posterior import FitContext, Posterior, View


@dataclass
class Deterministic(Posterior):
    """``p(y | x)`` is the softmax output of the network: one model, no samples."""

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        """Do nothing: the head is trained with the network."""

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        return predict_logits(view.network, view.features).log_softmax(-1)
