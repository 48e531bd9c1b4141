"""MC Dropout: the network with dropout left on, evaluated many times (Gal and Ghahramani, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.data import iter_batches
from spinal.errors import SpinalError
from spinal.networks import predict_logits, split_at_dropout
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.probabilities import mean_log_probs

_BATCH = 256


@dataclass
class MCDropout(Posterior):
    """K networks, each with different units dropped, the same units for every point.

    The layers before the first dropout layer are computed once for each point, the rest K times. At
    a dropout rate of 0, all K are the network itself: see `Deterministic`.

    Attributes:
        samples: K.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples"})

    samples: int = 100

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise SpinalError(f"samples must be 1 or more, not {self.samples}")

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        """Do nothing: dropout is trained with the network."""

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The mean over K samples, as ``log_probs_N_C``."""
        return mean_log_probs(self.sample(view, seed=seed))

    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        k = self.samples if k is None else k
        split = split_at_dropout(view.network)
        if not split.is_random:
            log_probs_N_C = predict_logits(view.network, view.features).log_softmax(-1)
            return log_probs_N_C.unsqueeze(1).expand(-1, k, -1)
        parts = []
        for batch in iter_batches(view.points, view.indices, _BATCH):
            x = view.network.to_input(batch)
            logits = torch.stack(list(split.samples(x, k, seed=seed)), dim=1)
            parts.append(logits.float().cpu().log_softmax(2))
        return torch.cat(parts)
