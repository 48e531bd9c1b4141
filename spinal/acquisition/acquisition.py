"""The base class of acquisition functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.candidates import Candidates
from spinal.errors import SpinalError


class AcquisitionError(SpinalError, ValueError):
    """An unknown acquisition function, or an invalid setting."""


class Acquisition(ABC):
    """Chooses which candidates to ask.

    An acquisition function is a frozen dataclass of its settings. ``needs`` names the fields of
    `Candidates` that it reads, so that nothing else is computed. It implements `_pick`.

    Attributes:
        needs: names of fields of `Candidates`.
        most_candidates: if there are more candidates, this many are drawn at random; None for no
            limit.
        drops_features: whether the samples that it compares should be models that lack some of
            their features, if the posterior has such samples.
    """

    needs: ClassVar[frozenset[str]]
    most_candidates: ClassVar[int | None] = None
    drops_features: ClassVar[bool] = False

    @property
    def compares_samples(self) -> bool:
        """Whether it compares posterior samples, which requires K > 1."""
        return False

    def scores(self, candidates: Candidates) -> Tensor | None:
        """Scores ``[N]`` that depend on each point alone; None if points are compared.

        If there are such scores, the points with the highest scores are chosen, with ties broken at
        random. A pool can then be ranked in parts.
        """
        return None

    @torch.no_grad()
    def select(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        """Positions of ``b`` distinct candidates, best first; all, by id, if there are no more.

        Args:
            candidates: The points to choose from.
            b: How many to choose.
            generator: The only source of randomness, on the CPU. The same state and the same
                candidates, in any order, give the same choice.
        """
        if b < 0:
            raise AcquisitionError(f"a batch of {b} points was asked for")
        candidates.check(self.needs)
        order = candidates.order()
        if b >= len(order):
            return order
        if b == 0:
            return order[:0]
        return order[self._pick(candidates.take(order), b, generator)]

    @abstractmethod
    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        """Positions ``[b]`` on the CPU; 0 < b < N, candidates are checked and ordered by id."""
