"""Herding: cover the pool, or its uncertain part, with similar points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.covering import CHUNK, Covering, UnitFeatures
from spinal.acquisition.scores import margin

#: Maximum number of candidates: the kernel between them and the sample is stored in memory.
_MOST_CANDIDATES = 50_000
#: Candidates whose gains are recomputed at once, in lazy greedy search.
_LAZY_BLOCK = 64
#: Smaller distances between float32 vectors of length 1 may be rounding errors.
_LEAST_DISTANCE = 1e-3


@dataclass(frozen=True)
class MaxHerding(Covering):
    r"""Greedily picks the point that increases the coverage of the pool most (Bae et al., 2024).

    With a Gaussian kernel k on centred features of length 1, a set S covers a point u by
    :math:`\max_{s \in S} k(s, u)`. Each pick adds most to the mean over the pool:

    .. math:: \arg\max_x \frac1U \sum_u \max(0, k(x, u) - \max_{s \in L \cup S} k(s, u)).

    It needs no model and no labels, so it can choose the first points. The width of the kernel
    depends on the pool and the number of labels: see `covering_radius`.

    The mean is over a sample of the pool. Gains never increase as S grows (the objective is
    submodular), so only candidates whose last known gain is high are evaluated again; the picks are
    the same as in an exhaustive search. If there are more than 50,000 candidates, 50,000 are drawn
    at random.

    Args:
        sample: How many points of the pool, drawn at random, are to be covered.
    """

    sample: int = 2_000

    needs: ClassVar[frozenset[str]] = frozenset({"features", "labelled_features"})
    most_candidates: ClassVar[int | None] = _MOST_CANDIDATES

    def __post_init__(self) -> None:
        if self.sample < 2:
            raise AcquisitionError(f"sample must be at least 2, not {self.sample}")

    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        return torch.tensor(self._coverage(candidates, distinct_M, b).pick(b))

    def _coverage(self, candidates: Candidates, distinct_M: Tensor, b: int) -> Coverage:
        """The points to cover, with the coverage by the labelled points."""
        assert candidates.features is not None
        assert candidates.labelled_features is not None
        # The order is random already, so the first points are a random sample.
        distinct_M = distinct_M[: max(_MOST_CANDIDATES, b)]
        points = UnitFeatures(candidates.features, distinct_M)
        sample_U_D = points.rows(torch.arange(min(self.sample, len(points))))
        radius = covering_radius(sample_U_D, len(candidates.labelled_features) + b)
        kernel_M_U = sample_U_D.new_empty(len(points), len(sample_U_D))
        start = 0
        for rows_B_D in points.blocks(len(sample_U_D)):
            kernel_M_U[start : start + len(rows_B_D)] = gaussian(rows_B_D, sample_U_D, radius)
            start += len(rows_B_D)
        coverage = Coverage(kernel_M_U, self._weights(candidates, distinct_M[: self.sample]))
        labelled_L_D = points.scale(candidates.labelled_features)
        coverage.add(gaussian(labelled_L_D, sample_U_D, radius))
        return coverage

    def _weights(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        """The weight of each point in the mean coverage, ``[U]``."""
        return torch.ones(len(sampled_U))


@dataclass(frozen=True)
class UncertaintyHerding(MaxHerding):
    r"""`MaxHerding` weighted by uncertainty (Bae et al., 2025).

    The mean is weighted by :math:`1 - (\bar p_{(1)} - \bar p_{(2)})`, one minus the margin between
    the two most probable classes. While the model knows little, all weights are similar, and the
    picks cover the pool; later, they cover the boundaries between classes.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "features", "labelled_features"})

    def _weights(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        weights_U = self._doubt(candidates, sampled_U).cpu()
        return weights_U if weights_U.any() else torch.ones_like(weights_U)

    def _doubt(self, candidates: Candidates, sampled_U: Tensor) -> Tensor:
        """The uncertainty of the model about each point, from 0 to 1, ``[U]``."""
        assert candidates.log_probs is not None
        return margin(candidates.log_probs[sampled_U.to(candidates.log_probs.device)])


class Coverage:
    r"""The coverage of U points, and how much each of M candidates would add to it.

    The coverage of a point is the kernel between it and the most similar point that was added.

    Args:
        kernel_M_U: The kernel between candidates and points, from 0 to 1.
        weights_U: The weight of each point.

    Attributes:
        covered_U: How well each point is covered, from 0 to 1.
    """

    def __init__(self, kernel_M_U: Tensor, weights_U: Tensor) -> None:
        self._kernel_M_U = kernel_M_U
        self._weights_U = (weights_U / weights_U.sum()).to(kernel_M_U)
        self.covered_U = torch.zeros_like(kernel_M_U[0])

    def __len__(self) -> int:
        """M, the number of candidates."""
        return len(self._kernel_M_U)

    def add(self, kernel_B_U: Tensor) -> None:
        """Add other points to the coverage, given the kernel to them."""
        if len(kernel_B_U):
            torch.maximum(self.covered_U, kernel_B_U.amax(0), out=self.covered_U)

    def add_candidates(self, candidates: Tensor) -> None:
        """Add these candidates to the coverage."""
        self.add(self._kernel_M_U[candidates.to(self._kernel_M_U.device)])

    def gains(self, candidates: Tensor) -> Tensor:
        """How much each of these candidates alone would add to the mean coverage."""
        kernel_B_U = self._kernel_M_U[candidates.to(self._kernel_M_U.device)]
        return kernel_B_U.sub_(self.covered_U).clamp_min_(0) @ self._weights_U

    def pick(self, b: int, taken: Sequence[int] = ()) -> list[int]:
        """Add ``b`` candidates, each with the greatest gain given the earlier ones (lazy greedy).

        Args:
            b: How many.
            taken: Candidates to leave out.

        Returns:
            The candidates, in the order in which they were added.
        """
        everyone = torch.arange(len(self))
        at_once = max(1, CHUNK // len(self.covered_U))
        bound_M = torch.cat([self.gains(block) for block in everyone.split(at_once)]).cpu()
        bound_M[list(taken)] = -torch.inf
        picks: list[int] = []
        for _ in range(b):
            best, greatest = -1, -torch.inf
            for block in bound_M.argsort(descending=True, stable=True).split(_LAZY_BLOCK):
                if bound_M[block[0]] <= greatest:
                    break
                gains_B = self.gains(block).cpu()
                gains_B[bound_M[block] == -torch.inf] = -torch.inf
                bound_M[block] = gains_B
                if gains_B.max() > greatest:
                    best, greatest = int(block[gains_B.argmax()]), float(gains_B.max())
            picks.append(best)
            bound_M[best] = -torch.inf
            self.add_candidates(torch.tensor([best]))
        return picks


def gaussian(a_N_D: Tensor, b_M_D: Tensor, radius: float) -> Tensor:
    r""":math:`\exp(-|a - b|^2 / r^2)` of all pairs of rows, ``[N, M]``: 1 / e at the radius."""
    return squared_distances(a_N_D, b_M_D).mul_(-1 / radius**2).exp_()


def squared_distances(a_N_D: Tensor, b_M_D: Tensor) -> Tensor:
    """Squared distances between all pairs of rows, ``[N, M]``."""
    inner_N_M = torch.addmm(b_M_D.square().sum(1), a_N_D, b_M_D.T, alpha=-2)
    return inner_N_M.add_(a_N_D.square().sum(1, keepdim=True)).clamp_min_(0)


def covering_radius(points_U_D: Tensor, n: int) -> float:
    """The radius at which n points can cover all U points.

    Each of n points has to cover m = U / n points. The radius is the median, over the points, of
    the distance to the m-th nearest other point. It decreases as labels are added, down to the
    distance between nearest neighbours. It depends neither on the number of points nor on the
    number of near-duplicates.
    """
    away_U_U = squared_distances(points_U_D, points_U_D).fill_diagonal_(-1)
    # The nearest is the point itself.
    nearest = min(max(len(points_U_D) // max(n, 1), 1) + 1, len(points_U_D))
    median = away_U_U.kthvalue(nearest).values.median().clamp_min(0).sqrt()
    return max(float(median), _LEAST_DISTANCE)
