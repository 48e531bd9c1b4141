r"""Bayesian Batch (ACS-FW): the batch whose likelihood approximates the likelihood of the pool.

Pinsler et al., 2019. Each point n has an expected log-likelihood, a function of the parameters. Its
values at J parameters drawn from the posterior form a vector:

.. math::
    L_n(\theta) = \sum_c p(c \mid x_n) \log p(c \mid x_n, \theta) + \gamma H[p(\cdot \mid x_n)],
    \qquad \hat L_n = \tfrac1{\sqrt J} [L_n(\theta_1), \dots, L_n(\theta_J)].

A sparse :math:`w \ge 0` with :math:`\sum_n w_n \hat L_n \approx \sum_n \hat L_n` is found by
Frank-Wolfe, one point at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates, chunks
from spinal.acquisition.ranking import argmax
from spinal.probabilities import entropy, mean_log_probs

#: Added to squared norms, to avoid division by 0.
_NORM = 1e-6
#: The minimum log-probability: a sample may rule out a class that the mean does not.
_LOWEST = -100.0
#: A step that gains less than this share of the target's squared norm is a rounding error.
_DONE = 1e-12


@dataclass(frozen=True)
class FrankWolfe(Acquisition):
    r"""ACS-FW, on the samples of any posterior; :math:`O(N J)` for each point.

    Args:
        projections: J, the number of posterior samples at which likelihoods are evaluated; all if
            there are fewer. The mean :math:`p(c \mid x_n)` is over all samples.
        gamma: The weight of the entropy, :math:`\gamma`.
    """

    projections: int = 10
    gamma: float = 0.7

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs"})

    def __post_init__(self) -> None:
        if self.projections < 1:
            raise AcquisitionError(f"projections must be 1 or more, not {self.projections}")

    @property
    def compares_samples(self) -> bool:
        return True

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.log_probs is not None
        return fill(project(candidates.log_probs, self.projections, self.gamma), b, generator)


def project(log_probs_N_K_C: Tensor, projections: int, gamma: float) -> Tensor:
    r"""The vectors :math:`\hat L_n`, ``[N, J]``, for the first J of K samples."""
    parts = []
    for part_n_K_C in chunks(log_probs_N_K_C):
        mean_n_C = mean_log_probs(part_n_K_C)
        log_n_J_C = part_n_K_C[:, :projections].clamp_min(_LOWEST)
        expected_n_J = (log_n_J_C @ mean_n_C.exp().unsqueeze(2)).squeeze(2)
        likelihood_n_J = expected_n_J + gamma * entropy(mean_n_C).unsqueeze(1)
        parts.append(likelihood_n_J / likelihood_n_J.shape[1] ** 0.5)
    return torch.cat(parts)


def fill(vectors_N_J: Tensor, b: int, generator: torch.Generator) -> Tensor:
    """Positions ``[b]`` of vectors that approximate the sum of all, from ``b`` Frank-Wolfe steps.

    Steps may return to the same points, which gives fewer than ``b`` points. The rest of the batch
    is then chosen in the same way, to approximate the remaining points.
    """
    left = torch.arange(len(vectors_N_J))
    batch = left[:0]
    while len(batch) < b:
        vectors_n_J = vectors_N_J if not len(batch) else vectors_N_J[left.to(vectors_N_J.device)]
        target_J = vectors_n_J.sum(0, dtype=torch.float64)
        chosen, _, _ = frank_wolfe(vectors_n_J, target_J, b - len(batch), generator)
        if not len(chosen):  # all remaining likelihoods are almost constant
            chosen = torch.randperm(len(left), generator=generator)[: b - len(batch)]
        batch = torch.cat([batch, left[chosen]])
        rest = torch.ones(len(left), dtype=torch.bool)
        rest[chosen] = False
        left = left[rest]
    return batch


def frank_wolfe(
    vectors_N_J: Tensor, target_J: Tensor, steps: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Approximate a target by :math:`\sum_n w_n v_n`, adding one vector at each step.

    With :math:`\sigma_n = \sqrt{|v_n|^2 + 10^{-6}}` and :math:`\sigma = \sum_n \sigma_n`, the
    problem is

    .. math:: \min_w \big| t - \textstyle\sum_n w_n v_n \big|^2
        \quad\text{so that}\quad w \ge 0,\ \textstyle\sum_n \sigma_n w_n \le \sigma,

    and a step goes towards the corner :math:`(\sigma / \sigma_f) e_f` that is best aligned with the
    residual, as far as the residual decreases. It ends early if no step decreases the residual.

    Returns:
        The chosen points, in the order in which they were first chosen; their weights; the norm of
        the residual after every step.
    """
    norms_N = (vectors_N_J.square().sum(1) + _NORM).sqrt()
    directions_N_J = vectors_N_J / norms_N.unsqueeze(1)
    scale = float(norms_N.sum(dtype=torch.float64))
    target_J = target_J.double()
    sum_J = torch.zeros_like(target_J)
    weights_N = torch.zeros(len(vectors_N_J), dtype=torch.float64)
    order: dict[int, None] = {}
    residuals: list[float] = []
    for _ in range(steps):
        residual_J = target_J - sum_J
        f = argmax(directions_N_J @ residual_J.to(vectors_N_J.dtype), generator)
        corner = scale / float(norms_N[f])
        towards_J = corner * vectors_N_J[f].double() - sum_J
        fall, length = float(towards_J @ residual_J), float(towards_J @ towards_J)
        if fall <= _DONE * float(target_J @ target_J):
            break
        step = min(1.0, fall / length)
        weights_N *= 1 - step
        weights_N[f] += step * corner
        sum_J += step * towards_J
        order[f] = None
        residuals.append(float((target_J - sum_J).norm()))
    chosen = torch.tensor(list(order), dtype=torch.long)
    chosen = chosen[weights_N[chosen] > 0]
    return chosen, weights_N[chosen], torch.tensor(residuals, dtype=torch.float64)
