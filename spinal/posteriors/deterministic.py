"""The network's own softmax, taken at its word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from spinal.networks import predict_logits
from spinal.posteriors.posterior import Posterior, View


@dataclass
class Deterministic(Posterior):
    """``p(y | x)`` is the softmax output of the network: K = 1."""

    def fit(self, *_: Any, **__: Any) -> None:
        """Nothing to learn: the head is trained with the network."""

    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        return predict_logits(view.network, view.features).log_softmax(-1).unsqueeze(1)
