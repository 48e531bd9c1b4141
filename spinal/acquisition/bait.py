"""BAIT: the batch that most reduces the expected error on the pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.covering import Covering, UnitFeatures
from spinal.acquisition.scores import mean_log_probs

#: The minimum ridge, for features that are all 0.
_LEAST_RIDGE = 1e-12


@dataclass(frozen=True)
class BAIT(Covering):
    r"""Minimum expected error, from Fisher information (Ash et al., 2021), in its two-class form.

    A point with features :math:`\phi` (centred, of length 1), whose most probable class has
    probability p, adds information :math:`w \phi \phi^\top` about the weights of a logistic
    regression, where :math:`w = p (1 - p)`. Let F be the mean of these matrices over candidates and
    labelled points, and :math:`M = \lambda I + \sum w \phi \phi^\top` over labelled points and
    picks. The batch should minimise :math:`\operatorname{tr}(M^{-1} F)`. First, 2b points are
    picked greedily. Then b of them are dropped, one at a time, each time the one whose removal
    increases the trace least.

    Initialisation takes :math:`O(N D^2)` time, each pick :math:`O(N D)`.

    Args:
        regularisation: :math:`\lambda`, as a multiple of :math:`\operatorname{tr}(F) / D`, the mean
            information of a point about one of the D weights.
    """

    regularisation: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset(
        {"log_probs", "features", "labelled_features", "labelled_log_probs"}
    )

    def __post_init__(self) -> None:
        if not 0 < self.regularisation < float("inf"):
            raise AcquisitionError(
                f"regularisation must be a number above 0, not {self.regularisation}"
            )

    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        assert candidates.log_probs is not None
        assert candidates.features is not None
        assert candidates.labelled_features is not None
        assert candidates.labelled_log_probs is not None
        points = UnitFeatures(candidates.features, distinct_M)
        w_M = variance(candidates.log_probs)[distinct_M]
        labelled_w_L = variance(candidates.labelled_log_probs)
        if not w_M.any():  # the model is certain everywhere: all points are equally informative
            w_M, labelled_w_L = torch.ones_like(w_M), torch.ones_like(labelled_w_L)
        labelled_L_D = points.scale(candidates.labelled_features).double().cpu()
        known_D_D = labelled_L_D.T @ (labelled_w_L[:, None] * labelled_L_D)
        needed_D_D = known_D_D + _information(points, w_M)
        needed_D_D /= len(points) + len(labelled_L_D)
        ridge = self.regularisation * needed_D_D.trace() / len(needed_D_D)
        known_D_D.diagonal().add_(ridge.clamp_min(_LEAST_RIDGE))
        picks, inverse_D_D = pick_forward(
            points, w_M, needed_D_D, known_D_D, min(2 * b, len(points))
        )
        rows_P_D = points.rows(picks).double().cpu()
        return picks[prune_backward(rows_P_D, w_M[picks], needed_D_D, inverse_D_D, b)]


def variance(log_probs_N_K_C: Tensor) -> Tensor:
    """``p (1 - p)`` of the most probable class, ``[N]`` in float64."""
    p_N = mean_log_probs(log_probs_N_K_C.double()).amax(1).exp().clamp_max(1)
    return (p_N * (1 - p_N)).cpu()


def pick_forward(
    points: UnitFeatures, w_M: Tensor, needed_D_D: Tensor, known_D_D: Tensor, n: int
) -> tuple[Tensor, Tensor]:
    r"""Greedily pick n points, each to decrease :math:`\operatorname{tr}(M^{-1} F)` most.

    By the Sherman-Morrison formula, the decrease is :math:`w q / (1 + w v)`, with
    :math:`v = \phi^\top M^{-1} \phi` and :math:`q = \phi^\top M^{-1} F M^{-1} \phi`. A pick x
    changes :math:`M^{-1}` by :math:`-c a a^\top`, where :math:`a = M^{-1} x` and
    :math:`c = w / (1 + w x^\top a)`, so v and q follow from two products with each point.

    Args:
        points: The points to pick from.
        w_M: Their variances.
        needed_D_D: F.
        known_D_D: M before the first pick.
        n: How many to pick.

    Returns:
        Indices ``[n]`` of the points, and the inverse of M after the last pick.
    """
    inverse_D_D = torch.cholesky_inverse(torch.linalg.cholesky(known_D_D))
    v_M, q_M = _quadratic_forms(points, inverse_D_D, inverse_D_D @ needed_D_D @ inverse_D_D)
    picks: list[int] = []
    for _ in range(n):
        fall_M = w_M * q_M / (1 + w_M * v_M)
        fall_M[picks] = -torch.inf
        picks.append(int(fall_M.argmax()))
        x_D, w = points.rows(torch.tensor(picks[-1:]))[0].double().cpu(), w_M[picks[-1]]
        a_D = inverse_D_D @ x_D
        c = w / (1 + w * (x_D @ a_D))
        needed_a_D = needed_D_D @ a_D
        both_D_2 = torch.stack([a_D, inverse_D_D @ needed_a_D], 1)
        along_M, across_M = points.inner_products(both_D_2).double().cpu().unbind(1)
        v_M -= c * along_M.square()
        q_M += c * along_M * (c * (a_D @ needed_a_D) * along_M - 2 * across_M)
        inverse_D_D -= c * torch.outer(a_D, a_D)
    return torch.tensor(picks), inverse_D_D


def prune_backward(
    rows_P_D: Tensor, w_P: Tensor, needed_D_D: Tensor, inverse_D_D: Tensor, b: int
) -> Tensor:
    r"""Keep b of P picks; those that matter least are dropped.

    Without a pick, :math:`\operatorname{tr}(M^{-1} F)` grows by :math:`w q / (1 - w v)`. Only the
    products of the picks with each other are needed.

    Args:
        rows_P_D: The picks.
        w_P: Their variances.
        needed_D_D: F.
        inverse_D_D: The inverse of M, with all picks.
        b: How many to keep.

    Returns:
        Indices ``[b]`` of the picks, ascending.
    """
    away_P_D = rows_P_D @ inverse_D_D
    v_P_P, q_P_P = away_P_D @ rows_P_D.T, away_P_D @ needed_D_D @ away_P_D.T
    left_P = torch.ones(len(rows_P_D), dtype=torch.bool)
    for _ in range(len(rows_P_D) - b):
        growth_P = w_P * q_P_P.diagonal() / (1 - w_P * v_P_P.diagonal())
        drop = int(torch.where(left_P, growth_P, torch.inf).argmin())
        left_P[drop] = False
        c = w_P[drop] / (1 - w_P[drop] * v_P_P[drop, drop])
        v_P, q_P, q = v_P_P[drop].clone(), q_P_P[drop].clone(), q_P_P[drop, drop].clone()
        cross_P_P = torch.outer(v_P, q_P)
        v_P_P += c * torch.outer(v_P, v_P)
        q_P_P += c * (cross_P_P + cross_P_P.T) + c.square() * q * torch.outer(v_P, v_P)
    return left_P.nonzero().flatten()


def _information(points: UnitFeatures, w_M: Tensor) -> Tensor:
    """The sum of ``w x x^T`` over all points, ``[D, D]`` in float64."""
    start = 0
    total_D_D = torch.zeros(points.dim, points.dim, dtype=torch.float64)
    for rows_B_D in points.blocks():
        w_B = w_M[start : start + len(rows_B_D)].to(rows_B_D)
        total_D_D += (rows_B_D.T @ (w_B[:, None] * rows_B_D)).cpu()
        start += len(rows_B_D)
    return total_D_D


def _quadratic_forms(points: UnitFeatures, *matrices_D_D: Tensor) -> Tensor:
    """``x^T A x`` of all points, for each matrix A, ``[A, M]`` in float64."""
    parts = [
        torch.stack([((rows @ matrix.to(rows)) * rows).sum(1) for matrix in matrices_D_D])
        for rows in points.blocks()
    ]
    return torch.cat(parts, 1).double().cpu()
