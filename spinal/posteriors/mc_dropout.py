"""MC Dropout: the network with its dropout left on, many times (Gal and Ghahramani, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinal.data import iter_batches
from spinal.networks import split_at_dropout
from spinal.posteriors.deterministic import Deterministic
from spinal.posteriors.posterior import Posterior, View

_BATCH = 256


@dataclass
class MCDropout(Posterior):
    """K networks, each with other units dropped, the same for every point.

    What comes before the first dropout layer is computed once for each point, the rest K times. At
    a dropout rate of 0, all K are the network itself: see `Deterministic`.

    Attributes:
        samples: K.
    """

    samples: int = 100

    def fit(self, *_: Any, **__: Any) -> None:
        """Nothing to learn: dropout is trained with the network."""

    def compare_samples(self) -> None:
        """There are always K of them."""

    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        """``log_probs_N_K_C``; predictions are averages over the same K, so ``samples`` is idle."""
        split = split_at_dropout(view.network)
        if not split.is_random:
            return Deterministic().log_probs(view).expand(-1, self.samples, -1)
        parts = []
        for batch in iter_batches(view.points, view.indices, _BATCH):
            x = view.network.to_input(batch)
            logits = torch.stack(list(split.samples(x, self.samples, seed=seed)), dim=1)
            parts.append(logits.float().cpu().log_softmax(2))
        return torch.cat(parts)
