"""What every acquisition function has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.candidates import Candidates
from spinal.errors import SpinalError


class AcquisitionError(SpinalError, ValueError):
    """An acquisition function that does not exist, or a setting that it cannot have."""


class Acquisition(ABC):
    """Chooses which candidates to ask.

    A strategy is a frozen dataclass of its settings. It says what it ``needs``, as names of fields
    of `Candidates`, so that nothing else has to be computed, and it implements `_pick`.

    Attributes:
        needs: names of fields of `Candidates`.
        most_candidates: of more candidates than that, as many, drawn by chance, are enough; None if
            it looks at all of them.
    """

    needs: ClassVar[frozenset[str]]
    most_candidates: ClassVar[int | None] = None

    @property
    def compares_samples(self) -> bool:
        """Whether it looks at how posterior samples differ: with K = 1 it sees nothing."""
        return False

    @torch.no_grad()
    def select(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        """Positions of ``b`` distinct candidates, the first choice first; all, if there are fewer.

        Args:
            candidates: The points to choose from.
            b: How many to choose.
            generator: The only source of chance, on the CPU. In the same state, with the same
                candidates in whatever order, the same ones are chosen.
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
