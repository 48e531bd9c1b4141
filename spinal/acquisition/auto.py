"""The default for vectors: first cover the pool, then prefer uncertain points."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.herding import UncertaintyHerding

#: With more labels per class than this, uncertainty counts more than covering the pool.
_ANSWERS_PER_CLASS = 2


@dataclass(frozen=True)
class Auto(UncertaintyHerding):
    r"""Moves from covering the pool to covering uncertain points, with some random picks.

    The weight of a point u is :math:`(1 - \alpha) + \alpha U_u / \bar U`, where U is one minus the
    margin between the two most probable classes, and :math:`\alpha = L / (L + 2 C)` for L labelled
    points and C classes. Without labels this is `MaxHerding`; with a few labels per class, mostly
    `UncertaintyHerding`. Before there is a model, give all classes the same probability.

    A small share of the picks is drawn uniformly from all candidates. Random picks protect against
    blind spots of the features and the model, and give an unbiased estimate of the accuracy.

    Args:
        chance: The probability that a pick is drawn at random.
    """

    chance: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.chance <= 1:
            raise AcquisitionError(f"chance must be from 0 to 1, not {self.chance}")

    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        by_chance_b = torch.rand(b, generator=generator) < self.chance
        coverage = self._coverage(candidates, distinct_M, b)
        drawn = torch.randperm(len(coverage), generator=generator)[: int(by_chance_b.sum())]
        coverage.add_candidates(drawn)
        picks_b = torch.empty(b, dtype=torch.long)
        picks_b[by_chance_b] = drawn
        herded = coverage.pick(b - len(drawn), taken=drawn.tolist())
        picks_b[~by_chance_b] = torch.tensor(herded, dtype=torch.long)
        return picks_b

    def _weights(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        assert candidates.labelled_features is not None
        doubt_U = super()._weights(candidates, sampled_U)
        labelled, classes = len(candidates.labelled_features), self._n_classes(candidates)
        trust = labelled / (labelled + _ANSWERS_PER_CLASS * classes)
        return (1 - trust) + trust * doubt_U / doubt_U.mean()

    def _n_classes(self, candidates: Candidates) -> int:
        assert candidates.log_probs is not None
        return candidates.log_probs.shape[2]
