r"""Multinomial logistic regression along a path of penalties.

For a penalty :math:`\lambda`, weights :math:`W` and biases :math:`b` minimise

.. math::
    \sum_i -\log p(y_i \mid x_i) + \tfrac\lambda2 \|W\|^2, \qquad
    p(c \mid x) \propto \exp(x^\top w_c + b_c) .

The penalty does not depend on the axes. Along the principal axes there are at most N of them, and
the Hessian is bounded by a matrix that is nearly diagonal, :math:`\tfrac12 X^\top X + \lambda`
(Böhning, 1992). With :math:`W` scaled by the inverse root of its diagonal, L-BFGS converges in
about 20 steps, and in fewer from the solution for the last penalty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from spinal.classifiers.parts import Part, add_unseen, held_out_labels, held_out_loss
from spinal.classifiers.units import UNITS, Coordinates, Kind, Units, coordinates_of

#: Penalties in decreasing order, for features with a mean square of 1, summed over features.
PENALTIES = tuple(10.0**e for e in np.arange(2, -5, -0.5))
#: How many of them are tried if there are no held-out labels: down to 0.1.
_DEFAULT = 7
#: The path ends when the held-out loss has risen this many times in a row.
_PATIENCE = 2


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted regression.

    Attributes:
        coordinates: coordinates of the features.
        weight: ``[R, C]``; 0 for a class without labels.
        bias: ``[C]``.
        counts: labels of every class, ``[C]``.
        chosen: how many of `PENALTIES` were used, ``[]``.
    """

    coordinates: Coordinates
    weight: Tensor
    bias: Tensor
    counts: Tensor
    chosen: Tensor | None = None

    def log_probs(self, x: Tensor) -> Tensor:
        """Log-probabilities ``[N, C]`` at features ``[N, D]``."""
        return _log_probs(self.coordinates(x), self.weight, self.bias, self.counts)


def logistic_path(
    x: Tensor, y: Tensor, n_classes: int, penalties: Sequence[float] = PENALTIES
) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights ``[D, C]`` and biases ``[C]`` for each penalty in turn.

    Args:
        x: features ``[N, D]``, float64; fastest if they are not correlated.
        y: classes ``[N]``. The weights of a class without labels are 0.
        n_classes: C.
        penalties: from large to small, so that each solution is a good start for the next.
    """
    seen, targets = np.unique(y.numpy(), return_inverse=True)
    onehot = np.eye(len(seen))[targets]
    solution = np.concatenate([np.zeros((x.shape[1], len(seen))), np.log(onehot.mean(0))[None]])
    for penalty in penalties:
        if len(seen) > 1:
            solution = _solve(x.numpy(), onehot, penalty, solution)
        whole = torch.zeros(x.shape[1] + 1, n_classes, dtype=torch.float64)
        whole[:, seen] = torch.from_numpy(solution)
        yield whole[:-1], whole[-1]


def _solve(x: NDArray, onehot: NDArray, penalty: float, start: NDArray) -> NDArray:
    """Weights and, in the last row, biases: ``[D + 1, S]``."""
    curvature = np.append((x**2).sum(0), len(x))
    stretch = 1 / np.sqrt(curvature / 4 + penalty)[:, None]
    design = np.column_stack([x, np.ones(len(x))]) * stretch.T
    decay = penalty * stretch**2
    decay[-1] = 0  # no penalty on biases

    def loss(flat: NDArray) -> tuple[float, NDArray]:
        theta = flat.reshape(start.shape)
        logits = design @ theta
        logits -= logits.max(1, keepdims=True)
        probs = np.exp(logits)
        total = probs.sum(1, keepdims=True)
        value = np.log(total).sum() - (logits * onehot).sum() + 0.5 * (decay * theta**2).sum()
        return value, (design.T @ (probs / total - onehot) + decay * theta).ravel()

    options = {"maxiter": 300, "ftol": 1e-7, "gtol": 1e-3, "maxcor": 10}
    result = minimize(loss, (start / stretch).ravel(), jac=True, method="L-BFGS-B", options=options)
    return result.x.reshape(start.shape) * stretch


def fit_logistic(
    x: Tensor,
    y: Tensor,
    n_classes: int,
    parts: Sequence[Part],
    kinds: Sequence[Kind] = UNITS,
    reference: Tensor | None = None,
    default: int = _DEFAULT,
) -> tuple[Logistic, Tensor]:
    """The regression whose units and penalty predict held-out points best.

    Args:
        x: features ``[N, D]``.
        y: classes ``[N]``.
        n_classes: C.
        parts: held-out parts for choosing the settings.
        kinds: kinds of units to choose from.
        reference: points from which units are computed, ``[M, D]``; None for ``x``.
        default: how many of `PENALTIES` to use if there are no parts.

    Returns:
        The regression on all points, and the predictions ``[M, C]`` for all held-out points by
        regressions that did not see them.
    """
    held_y = held_out_labels(y, parts)
    best, choice = math.inf, (kinds[0], default)
    held_log_probs = torch.zeros(0, n_classes, dtype=torch.float64)
    for kind in kinds if parts else ():
        lowest, rises = math.inf, 0
        paths = _held_out_path(y, n_classes, parts, kind, reference)
        for number, log_probs in enumerate(paths, start=1):
            value = float(held_out_loss(log_probs, held_y))
            if value < best:
                best, choice, held_log_probs = value, (kind, number), log_probs
            rises = 0 if value < lowest else rises + 1
            lowest = min(value, lowest)
            if rises == _PATIENCE:
                break
    kind, number = choice
    units = Units.fit(x if reference is None else reference, kind)
    coordinates = Coordinates.fit(x, units)
    # One solution from the start. It is as close to the minimum as the end of a path would be.
    chosen = PENALTIES[number - 1 : number]
    ((weight, bias),) = logistic_path(coordinates(x), y, n_classes, chosen)
    counts = torch.bincount(y, minlength=n_classes)
    return Logistic(coordinates, weight, bias, counts, torch.tensor(number)), held_log_probs


def _held_out_path(
    y: Tensor, n_classes: int, parts: Sequence[Part], kind: Kind, reference: Tensor | None
) -> Iterator[Tensor]:
    """Predictions ``[M, C]`` for the held-out points of all parts, for each penalty in turn."""
    paths, held = [], []
    for part, z in coordinates_of(parts, kind, reference):
        known = y[~part.held]
        paths.append(logistic_path(z[~part.held], known, n_classes))
        held.append((z[part.held], torch.bincount(known, minlength=n_classes)))
    for solutions in zip(*paths, strict=True):
        yield torch.cat([
            _log_probs(x, weight, bias, counts)
            for (weight, bias), (x, counts) in zip(solutions, held, strict=True)
        ])  # fmt: skip


def _log_probs(x: Tensor, weight: Tensor, bias: Tensor, counts: Tensor) -> Tensor:
    seen = counts.nonzero().flatten()
    logits = x @ weight[:, seen] + bias[seen]
    return add_unseen(logits.log_softmax(1), seen, counts)
