"""Acquisition functions for points that may have several classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.auto import Auto
from spinal.acquisition.candidates import Candidates

#: How the uncertainties about single classes are combined into the uncertainty about a point.
COMBINE: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda doubt_N_C: doubt_N_C.mean(1),
    "max": lambda doubt_N_C: doubt_N_C.amax(1),
}


@dataclass(frozen=True)
class MultiHerding(Auto):
    r"""`Auto` for independent classes: a point may have none, one, or several of them.

    With the probability :math:`p_c` of class c, the uncertainty about it is
    :math:`1 - |2 p_c - 1|`: one minus the margin between present and absent. The uncertainty U of a
    point is the mean over all classes, or the maximum. Points are weighted and chosen as in `Auto`.

    Args:
        combine: ``mean`` or ``max``.
    """

    combine: str = "mean"

    needs: ClassVar[frozenset[str]] = frozenset({"label_probs", "features", "labelled_features"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combine not in COMBINE:
            raise AcquisitionError(f"combine is one of {', '.join(COMBINE)}, not {self.combine!r}")

    def _doubt(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        assert candidates.label_probs is not None
        return label_doubt(candidates.label_probs[sampled_U], self.combine)

    def _n_classes(self, candidates: Candidates) -> int:
        assert candidates.label_probs is not None
        return candidates.label_probs.shape[1]


def label_doubt(probs_N_C: Tensor, combine: str = "mean") -> Tensor:
    """The uncertainty of a model about each point, from 0 to 1, ``[N]``; see `MultiHerding`."""
    return COMBINE[combine](1 - (2 * probs_N_C - 1).abs())
