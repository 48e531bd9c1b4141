r"""The expected information in the labels of a batch, for BatchBALD.

For a batch :math:`S` with labels :math:`y_S`, K posterior samples give the joint probability
:math:`q(y_S) = \frac1K \sum_k p(y_S \mid \omega_k)` and, once the labels are known, the weight of
each sample :math:`p(k \mid y_S) = p(y_S \mid \omega_k) / (K q(y_S))`. The information
in a further label is

.. math::
    I(y_x; \omega \mid y_S) = \sum_{y_S} q(y_S) \Big( H\big[\textstyle\sum_k p(k \mid y_S)\,
        p(y_x \mid \omega_k)\big] - \sum_k p(k \mid y_S) H[p(y_x \mid \omega_k)] \Big).

This equals the difference of joint entropies in the paper. With sampled labellings it is the same
estimator up to a control variate (the second sum, whose expectation is known, is taken over the
labellings that were drawn). In this form no product of probabilities can underflow, no large
entropies are subtracted, and no term is negative, so float32 is sufficient.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spinal.probabilities import entropy

#: Smaller probabilities are raised to the first value, and smaller sample weights are dropped.
#: Neither affects a result, and no product of the two is too small for float32.
_LEAST_PROBABILITY = 1e-20
_LEAST_WEIGHT = 1e-12
#: If the weight of a sample is closer to 1 than this, it is 1 in float32.
_NO_DOUBT = 1e-7


class Labellings:
    """Labellings of a growing batch: all of them while there are few, otherwise a sample.

    Args:
        samples: K, the number of posterior samples.
        limit: M, the maximum number of labellings (rounded up to a multiple of K when they are
            drawn, because each posterior sample draws the same number).
        buffer: How many numbers `information` may store at once, in addition to the arguments.
    """

    def __init__(self, samples: int, limit: int, buffer: int, device: torch.device) -> None:
        self.limit, self._buffer = limit, buffer
        self._batch: list[Tensor] = []
        self._drawn = False
        self._log_joint_M_K = torch.zeros(1, samples, dtype=torch.float64, device=device)
        self._update()

    def add(self, log_probs_K_C: Tensor, generator: torch.Generator) -> None:
        """Add a point to the batch."""
        log_probs_K_C = log_probs_K_C.double()
        self._batch.append(log_probs_K_C)
        if self._drawn:
            self._draw(log_probs_K_C, generator)
        elif len(self._log_joint_M_K) * log_probs_K_C.shape[1] <= self.limit:
            longer = self._log_joint_M_K.unsqueeze(1) + _floor(log_probs_K_C).T
            self._log_joint_M_K = longer.flatten(0, 1)
        else:
            samples, self._drawn = len(log_probs_K_C), True
            each = math.ceil(self.limit / samples)
            self._log_joint_M_K = self._log_joint_M_K.new_zeros(each * samples, samples)
            for earlier in self._batch:
                self._draw(earlier, generator)
        self._update()

    def _draw(self, log_probs_K_C: Tensor, generator: torch.Generator) -> None:
        """Extend every labelling by a label drawn from its posterior sample."""
        each = len(self._log_joint_M_K) // len(log_probs_K_C)
        labels_K_E = torch.multinomial(
            log_probs_K_C.exp().cpu(), each, replacement=True, generator=generator
        )
        labels_M = labels_K_E.flatten().to(log_probs_K_C.device)
        self._log_joint_M_K += _floor(log_probs_K_C).T[labels_M]

    def _update(self) -> None:
        log_joint_M_K = self._log_joint_M_K
        if self._drawn:
            q_M = log_joint_M_K.new_full((len(log_joint_M_K),), 1 / len(log_joint_M_K))
        else:
            q_M = log_joint_M_K.logsumexp(1).exp() / log_joint_M_K.shape[1]
        posterior_M_K = log_joint_M_K.softmax(1)
        posterior_M_K[posterior_M_K < _LEAST_WEIGHT] = 0
        # Labellings that determine the model leave nothing to learn: their terms are 0. In a large
        # batch, these are most labellings.
        open_M = posterior_M_K.amax(1) < 1 - _NO_DOUBT
        q_M, posterior_M_K = q_M[open_M], posterior_M_K[open_M]
        self._q_M, self._posterior_M_K = q_M.float(), posterior_M_K.float()
        self._mean_posterior_K = q_M @ posterior_M_K

    def information(self, log_probs_B_K_C: Tensor) -> Tensor:
        """The information in the label of each of B points, given these labellings, ``[B]``.

        Most of the time of BatchBALD goes into the matrix product [M, K] x [K, B C] below.
        """
        points, samples, classes = log_probs_B_K_C.shape
        within_B_K = entropy(log_probs_B_K_C.double())
        probs_K_BC = (
            log_probs_B_K_C.float().exp().clamp_min(_LEAST_PROBABILITY).transpose(0, 1)
        ).reshape(samples, points * classes)
        rows = max(1, self._buffer // (2 * points * classes))
        total_BC = probs_K_BC.new_zeros(points * classes, dtype=torch.float64)
        for q_m, posterior_m_K in zip(
            self._q_M.split(rows), self._posterior_M_K.split(rows), strict=True
        ):
            p_m_BC = posterior_m_K @ probs_K_BC
            total_BC -= q_m @ p_m_BC.log().mul_(p_m_BC)
        between_B = total_BC.view(points, classes).sum(1)
        return (between_B - within_B_K @ self._mean_posterior_K).clamp_min(0)


def _floor(log_probs: Tensor) -> Tensor:
    return log_probs.clamp_min(math.log(_LEAST_PROBABILITY))
