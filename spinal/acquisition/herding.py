"""Herding: cover the pool by similar points, or the part of it where the model is unsure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.covering import Covering, UnitFeatures
from spinal.acquisition.scores import margin

#: Candidates whose gains are computed anew at once, in lazy greedy search.
_LAZY_BLOCK = 64
#: Distances of float32 vectors of length 1 that rounding cannot tell from 0.
_LEAST_DISTANCE = 1e-3


@dataclass(frozen=True)
class MaxHerding(Covering):
    r"""Greedily, the point that covers most of what is not covered yet (Bae et al., 2024).

    With a Gaussian kernel k on centred features of length 1, a set S covers a point u by
    :math:`\max_{s \in S} k(s, u)`. Each pick adds most to the mean over the pool:

    .. math:: \arg\max_x \frac1U \sum_u \max(0, k(x, u) - \max_{s \in L \cup S} k(s, u)).

    It needs no model and no labels, and so serves for the first questions. The width of the kernel
    follows from the pool and the number of answers: see `covering_radius`.

    The mean is over a sample of the pool; candidates are all of it. Gains only fall as S grows (the
    objective is submodular), so that only candidates whose last known gain is high are evaluated
    again: the picks are those of the exhaustive search.

    Args:
        sample: How many points of the pool, drawn at random, are to be covered.
    """

    sample: int = 2_000

    needs: ClassVar[frozenset[str]] = frozenset({"features", "labelled_features"})

    def __post_init__(self) -> None:
        if self.sample < 2:
            raise AcquisitionError(f"sample must be at least 2, not {self.sample}")

    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        assert candidates.features is not None
        points = UnitFeatures(candidates.features, distinct_M)
        return torch.tensor(herd(points, self._coverage(candidates, points, distinct_M, b), b))

    def _coverage(
        self, candidates: Candidates, points: UnitFeatures, distinct_M: Tensor, b: int
    ) -> Coverage:
        """What is to be covered, and how well the labelled points do it."""
        assert candidates.labelled_features is not None
        # The order is random already: the first are a sample.
        sample_U_D = points.rows(torch.arange(min(self.sample, len(points))))
        weights_U = self._weights(candidates, distinct_M[: self.sample])
        known = len(candidates.labelled_features) + b
        coverage = Coverage(sample_U_D, weights_U, covering_radius(sample_U_D, known))
        coverage.add(points.scale(candidates.labelled_features))
        return coverage

    def _weights(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        """How much it counts that a point is covered, ``[U]``."""
        return torch.ones(len(sampled_U))


@dataclass(frozen=True)
class UncertaintyHerding(MaxHerding):
    r"""`MaxHerding` of the points about which the model is unsure (Bae et al., 2025).

    The mean is weighted by :math:`1 - (\bar p_{(1)} - \bar p_{(2)})`, one minus the margin between
    the two most probable classes. While the model knows little, all weights are alike, and the pool
    is covered; later, picks are where the classes meet.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "features", "labelled_features"})

    def _weights(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        assert candidates.log_probs is not None
        weights_U = margin(candidates.log_probs[sampled_U.to(candidates.log_probs.device)]).cpu()
        return weights_U if weights_U.any() else torch.ones_like(weights_U)


class Coverage:
    r"""How well U points are covered: by the kernel to the most similar point that was added.

    The kernel is :math:`k(x, u) = \exp(-|x - u|^2 / r^2)`.

    Args:
        points_U_D: The points, of length 1.
        weights_U: How much each counts.
        radius: r, the distance at which a point still covers another by 1 / e.

    Attributes:
        covered_U: How well each point is covered, from 0 to 1.
    """

    def __init__(self, points_U_D: Tensor, weights_U: Tensor, radius: float) -> None:
        self._points_U_D, self._radius = points_U_D, radius
        self._weights_U = (weights_U / weights_U.sum()).to(points_U_D)
        self.covered_U = points_U_D.new_zeros(len(points_U_D))

    def __len__(self) -> int:
        return len(self._points_U_D)

    def gains(self, rows_B_D: Tensor) -> Tensor:
        """How much each row, if added alone, would add to the weighted mean coverage, ``[B]``."""
        gained_B_U = self._kernel(rows_B_D).sub_(self.covered_U).clamp_min_(0)
        return gained_B_U @ self._weights_U

    def add(self, rows_B_D: Tensor) -> None:
        """Count the points as covered by these rows, too."""
        if len(rows_B_D):
            torch.maximum(self.covered_U, self._kernel(rows_B_D).amax(0), out=self.covered_U)

    def _kernel(self, rows_B_D: Tensor) -> Tensor:
        away_B_U = squared_distances(rows_B_D, self._points_U_D)
        return away_B_U.mul_(-1 / self._radius**2).exp_()


def herd(points: UnitFeatures, coverage: Coverage, b: int, taken: Sequence[int] = ()) -> list[int]:
    """Lazy greedy search: ``b`` points, each with the greatest gain given those before.

    Args:
        points: The points to pick from.
        coverage: What they are to cover; the picks are added to it.
        b: How many to pick.
        taken: Points that are not picked.

    Returns:
        Indices of the points, the first pick first.
    """
    bound_M = torch.cat([coverage.gains(rows) for rows in points.blocks(len(coverage))]).cpu()
    bound_M[list(taken)] = -torch.inf
    picks: list[int] = []
    for _ in range(b):
        best, greatest = -1, -torch.inf
        for block in bound_M.argsort(descending=True, stable=True).split(_LAZY_BLOCK):
            if bound_M[block[0]] <= greatest:
                break
            gains_B = coverage.gains(points.rows(block)).cpu()
            gains_B[bound_M[block] == -torch.inf] = -torch.inf
            bound_M[block] = gains_B
            if gains_B.max() > greatest:
                best, greatest = int(block[gains_B.argmax()]), float(gains_B.max())
        picks.append(best)
        bound_M[best] = -torch.inf
        coverage.add(points.rows(torch.tensor([best])))
    return picks


def squared_distances(a_N_D: Tensor, b_M_D: Tensor) -> Tensor:
    """Between all pairs of rows, ``[N, M]``."""
    inner_N_M = torch.addmm(b_M_D.square().sum(1), a_N_D, b_M_D.T, alpha=-2)
    return inner_N_M.add_(a_N_D.square().sum(1, keepdim=True)).clamp_min_(0)


def covering_radius(points_U_D: Tensor, n: int) -> float:
    """How far a point has to reach if n of them are to cover all U.

    Each of n has to stand for m = U / n points. The radius is the median, over the points, of the
    distance to the m-th nearest other one. It falls as answers come in, down to the distance of
    nearest neighbours. It depends neither on the number of points nor on how many nearly coincide.
    """
    away_U_U = squared_distances(points_U_D, points_U_D).fill_diagonal_(-1)
    # The nearest is the point itself.
    nearest = min(max(len(points_U_D) // max(n, 1), 1) + 1, len(points_U_D))
    median = away_U_U.kthvalue(nearest).values.median().clamp_min(0).sqrt()
    return max(float(median), _LEAST_DISTANCE)
