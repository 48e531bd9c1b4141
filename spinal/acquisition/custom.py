"""A user's function as an acquisition function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.ranking import top


@dataclass(frozen=True)
class Custom(Acquisition):
    """The ``b`` candidates with the highest scores of any function; ties are broken at random.

    Attributes:
        score: maps `Candidates` to one number for each, ``[N]``. If the function has an attribute
            ``needs``, it names the fields of `Candidates` that are filled in; otherwise these are
            ``log_probs`` (with K = 1) and ``features``. Set an attribute ``compares_samples`` to
            True to get posterior samples in ``log_probs``.
    """

    score: Callable[[Candidates], Tensor]

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The fields of `Candidates` that the function reads."""
        return frozenset(getattr(self.score, "needs", ("log_probs", "features")))

    @property
    def compares_samples(self) -> bool:
        return bool(getattr(self.score, "compares_samples", False))

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        scores_N = torch.as_tensor(self.score(candidates)).detach().cpu()
        if scores_N.shape != (len(candidates),):
            raise AcquisitionError(
                f"the acquisition function gave scores of shape {tuple(scores_N.shape)} for "
                f"{len(candidates)} candidates: return one number for each"
            )
        if scores_N.isnan().any():
            raise AcquisitionError("the acquisition function gave scores that are NaN")
        return top(scores_N, b, generator)
