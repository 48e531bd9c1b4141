"""Choosing by a score of each point: the b highest, or at random in proportion to the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.scores import COMPARING, Score
from spinal.probabilities import sharpened


@dataclass(frozen=True)
class Ranked(Acquisition):
    r"""The ``b`` highest scores; ties are broken at random.

    Args:
        score: One of `spinal.acquisition.scores`.
        power: If given, points are ranked by :math:`\log s_n + \epsilon_n` with
            :math:`\epsilon_n \sim \mathrm{Gumbel}(0, 1 / \beta)` and this :math:`\beta`. This draws
            points one after the other in proportion to :math:`s_n^\beta`. With BALD, it is
            PowerBALD (Kirsch et al., 2023): a batch of top scores contains many
            near-duplicates, and random noise removes most of them at no cost. :math:`\beta = 0` is
            random, :math:`\beta \to \infty` the ``b`` highest.
        sharpness: Score :math:`p^\gamma`, normalised again, instead of :math:`p`. Above 1,
            less probable classes count less: for large :math:`\gamma` every score gives the same
            ranking as the margin.
    """

    score: Score
    power: float | None = None
    sharpness: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs"})

    @property
    def compares_samples(self) -> bool:
        return self.score in COMPARING

    def __post_init__(self) -> None:
        if self.power is not None and not 0 <= self.power < float("inf"):
            raise AcquisitionError(f"power must be a number from 0 up, not {self.power}")
        if not 0 < self.sharpness < float("inf"):
            raise AcquisitionError(f"sharpness must be a positive number, not {self.sharpness}")

    def scores(self, candidates: Candidates) -> Tensor | None:
        return None if self.power is not None else self._scores(candidates)

    def _scores(self, candidates: Candidates) -> Tensor:
        assert candidates.log_probs is not None
        return self.score(sharpened(candidates.log_probs, self.sharpness)).cpu()

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        scores_N = self._scores(candidates)
        if self.power is not None:
            scores_N = perturbed(scores_N, self.power, generator)
        return top(scores_N, b, generator)


@dataclass(frozen=True)
class Random(Acquisition):
    """Any ``b`` points, all equally probable."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def scores(self, candidates: Candidates) -> Tensor | None:
        return torch.zeros(len(candidates), dtype=torch.float64)

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        return torch.randperm(len(candidates), generator=generator)[:b]


def top(scores_N: Tensor, b: int, generator: torch.Generator) -> Tensor:
    """Positions of the ``b`` highest scores, descending; equal scores in random order."""
    shuffled = torch.randperm(len(scores_N), generator=generator)
    ranked = scores_N[shuffled].argsort(descending=True, stable=True)
    return shuffled[ranked[:b]]


def perturbed(scores_N: Tensor, power: float, generator: torch.Generator) -> Tensor:
    r""":math:`\beta \log s_n` plus Gumbel noise: sorting draws in proportion to :math:`s_n^\beta`.

    Points with a score of 0 follow after all others, in random order, because log 0 ties them.
    """
    log_N = torch.special.xlogy(torch.tensor(power, dtype=torch.float64), scores_N)
    return log_N + gumbel(len(scores_N), generator)


def argmax(values_N: Tensor, generator: torch.Generator) -> int:
    """Position of the greatest value; ties are broken at random."""
    greatest = (values_N == values_N.max()).nonzero().flatten()
    if len(greatest) == 1:
        return int(greatest)
    return int(greatest[torch.randint(len(greatest), (1,), generator=generator)])


def gumbel(n: int, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise, ``[n]`` in float64."""
    exponential = torch.empty(n, dtype=torch.float64).exponential_(generator=generator)
    return -exponential.clamp_min(torch.finfo(torch.float64).tiny).log()
