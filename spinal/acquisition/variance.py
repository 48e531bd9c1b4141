"""BALD from variances that are known in closed form: no samples, and no batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.ranking import perturbed, top
from spinal.acquisition.scores import mean_log_probs

#: Below this, a class counts as this probable: its variance is rounding.
_LEAST = 1e-12


@dataclass(frozen=True)
class VarianceBALD(Acquisition):
    r"""The highest mutual information of label and model, to second order in their spread.

    The entropy is :math:`-\sum_c p_c \log p_c`, its second derivative :math:`-1 / p_c`; so, for
    probabilities with mean :math:`\bar p` and variances :math:`v`,

    .. math:: H[\bar p] - \mathbb E\, H[p] \approx \tfrac12 \sum_c v_c / \bar p_c .

    With the closed-form dropout variances of an SPN, one pass does what BALD needs K for. They are
    too small by orders of magnitude but rank points much as samples do (see
    `spinal.circuits.dropout`): the score is for ranking, its size means nothing.

    There is no BatchBALD of this kind. Its joint entropies need to know how the probabilities of
    *different* points vary together, and the moments are those of each point alone. Near-duplicates
    are kept apart by chance instead, as in PowerBALD.

    Parameters
    ----------
    power
        Draw in proportion to the score to this power, see `Ranked`; None: the ``b`` highest.
    """

    power: float | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "variances"})

    def __post_init__(self) -> None:
        if self.power is not None and not 0 <= self.power < float("inf"):
            raise AcquisitionError(f"power must be a number from 0 up, not {self.power}")

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.log_probs is not None
        assert candidates.variances is not None
        mean_N_C = mean_log_probs(candidates.log_probs).double().exp()
        scores_N = bald_from_variances(mean_N_C, candidates.variances.double()).cpu()
        if self.power is not None:
            scores_N = perturbed(scores_N, self.power, generator)
        return top(scores_N, b, generator)


def bald_from_variances(mean_N_C: Tensor, variances_N_C: Tensor) -> Tensor:
    r""":math:`\tfrac12 \sum_c v_c / \bar p_c`, ``[N]`` in nats; 0 with a single class."""
    if mean_N_C.shape[1] == 1:
        return torch.zeros_like(mean_N_C[:, 0])
    return (variances_N_C.clamp_min(0) / mean_N_C.clamp_min(_LEAST)).sum(1) / 2
