"""Scores weighted by density: uncertain points that are similar to many others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy.stats import rankdata
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.ranking import top
from spinal.acquisition.scores import COMPARING, Score


@dataclass(frozen=True)
class DensityWeighted(Acquisition):
    r"""The ``b`` highest values of :math:`s_n \cdot (\mathrm{rank}\, p(z_n) / N)^\beta`.

    This is one interpretation of the paper's remark that the output of the SPN serves "to calculate
    the weights by which the acquisition function are multiplied", which it does not explain. In
    addition to class probabilities, from which the score is computed, an SPN gives the density
    :math:`p(z)`. As a weight, it prevents the choice of outliers (information density; Settles and
    Craven, 2008). The weight is the rank of the density among the candidates, from 1 to N, because
    densities over a hundred features differ by hundreds of nats, which would outweigh any score.

    The other interpretation, the probability of the most probable class as the weight, would favour
    the points that the score is meant to avoid.

    Args:
        score: One of `spinal.acquisition.scores`.
        strength: :math:`\beta`; with 0 the density has no effect.
    """

    score: Score
    strength: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "log_density"})

    @property
    def compares_samples(self) -> bool:
        return self.score in COMPARING

    def __post_init__(self) -> None:
        if not 0 <= self.strength < float("inf"):
            raise AcquisitionError(f"strength must be a number from 0 up, not {self.strength}")

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.log_probs is not None
        assert candidates.log_density is not None
        scores_N = self.score(candidates.log_probs).cpu()
        ranks_N = torch.from_numpy(rankdata(candidates.log_density.cpu().numpy()))
        return top(scores_N * (ranks_N / len(ranks_N)) ** self.strength, b, generator)
