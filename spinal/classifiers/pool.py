r"""A circuit that also learns from unlabelled points.

The circuit in closed form (`spinal.classifiers.gaussian`) needs only moments of each class, and
points whose class is guessed can contribute to them:

1. A first circuit is fitted to the labelled points.
2. Labels spread along a graph of neighbours (`spread_labels`).
3. Each other point of the pool gets targets and a weight that is high if the circuit and the graph
   agree (`pool_targets`). All weights, with 1 for a labelled point, are scaled so that their sum is
   the number of labelled points.
4. A new circuit is fitted to the targets of all points. Steps 3 and 4 are done twice.

For predictions of held-out points, all of this is done without their labels, and without these
points in step 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import one_hot

from spinal.classifiers.gaussian import (
    MOST_FEATURES,
    Gaussian,
    Moments,
    choose_settings,
)
from spinal.classifiers.parts import Part, held_out_labels
from spinal.classifiers.priors import add_one
from spinal.classifiers.units import Coordinates, Kind, Units

#: The maximum weight of an unlabelled point; a labelled point has weight 1.
_WEIGHT = 0.3
#: Points with a lower weight are left out.
_LEAST_WEIGHT = 1e-3
_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class PoolPoints:
    """Labelled and unlabelled points to learn from.

    Attributes:
        x: features, ``[P, D]``.
        labelled: rows of the labelled points, ``[N]``.
        smoothing: normalised weights of their graph, ``[P, P]``; see `spinal.classifiers.graph`.
    """

    x: Tensor
    labelled: Tensor
    smoothing: csr_matrix


def fit_gaussian_to_pool(
    pool: PoolPoints, y: Tensor, n_classes: int, parts: Sequence[Part], kind: Kind
) -> tuple[Gaussian, Tensor]:
    """The circuit of labelled and unlabelled points.

    Args:
        pool: the points.
        y: classes of the labelled points, ``[N]``.
        n_classes: C.
        parts: held-out parts of the labelled points, to choose settings; at least one.
        kind: kind of the units.

    Returns:
        The circuit, and the predictions ``[M, C]`` for all held-out points by circuits that did not
        see them.
    """
    coordinates = Coordinates.fit(pool.x, Units.fit(pool.x, kind), MOST_FEATURES)
    z, held_y = coordinates(pool.x), held_out_labels(y, parts)
    everyone = torch.ones(len(y), dtype=torch.bool)
    pupils = [_Pupil(pool, z, y, n_classes, ~part.held) for part in parts]
    pupils.append(_Pupil(pool, z, y, n_classes, everyone))
    for _ in range(_ROUNDS):
        _, settings, _ = choose_settings([pupil.fold() for pupil in pupils[:-1]], held_y)
        for pupil in pupils:
            log_probs = pupil.moments.log_probs(z, settings, pupil.prior)
            pupil.learn(*pool_targets(log_probs, pupil.spread))
    _, settings, held_log_probs = choose_settings([p.fold() for p in pupils[:-1]], held_y)
    last = pupils[-1]
    return last.moments.as_circuit(coordinates, settings, last.prior), held_log_probs


class _Pupil:
    """A circuit that learns from some of the labels.

    Args:
        pool: the points.
        z: their coordinates ``[P, R]``.
        y: classes of the labelled points, ``[N]``.
        n_classes: C.
        known: which labels it learns from, ``[N]`` booleans. The other points are held out.
    """

    def __init__(
        self, pool: PoolPoints, z: Tensor, y: Tensor, n_classes: int, known: Tensor
    ) -> None:
        self._z, self._labelled, self._held = z, pool.labelled[known], pool.labelled[~known]
        self._targets = one_hot(y[known], n_classes).double()
        counts = self._targets.sum(0)
        self._seen = counts > 0
        self.prior = add_one(counts)
        self.spread = spread_labels(pool.smoothing, self._labelled, y[known], n_classes)
        self.moments = Moments.of(z[self._labelled], self._targets)

    def fold(self) -> tuple[Moments, Tensor, Tensor]:
        """A fold for `choose_settings`."""
        return self.moments, self._z[self._held], self.prior

    def learn(self, targets: Tensor, weights: Tensor) -> None:
        """Fit the circuit to targets ``[P, C]`` with weights ``[P]``, and to the labels."""
        # A class without labels cannot be learned from guesses.
        weighted = weights[:, None] * torch.where(self._seen, targets, 0)
        weighted[self._labelled] = self._targets
        weighted[self._held] = 0
        rows = weighted.sum(1) > _LEAST_WEIGHT
        weighted = weighted[rows]
        self.moments = Moments.of(self._z[rows], weighted * len(self._labelled) / weighted.sum())


def spread_labels(
    smoothing: csr_matrix,
    labelled: Tensor,
    labels: Tensor,
    n_classes: int,
    *,
    reach: float = 0.95,
    steps: int = 50,
) -> Tensor:
    r"""Label spreading along a graph (Zhou et al., 2004).

    :math:`F \leftarrow \alpha S F + (1 - \alpha) Y`, where Y holds the labels. Each class has the
    same total in Y, regardless of its number of labels.

    Args:
        smoothing: S, ``[P, P]``; see `spinal.classifiers.graph`.
        labelled: rows of points with labels, ``[N]``.
        labels: their classes, ``[N]``.
        n_classes: C.
        reach: :math:`\alpha`.
        steps: number of iterations.

    Returns:
        Class probabilities ``[P, C]``; uniform for points that no label reaches.
    """
    start = np.zeros((smoothing.shape[0], n_classes))
    start[labelled.numpy(), labels.numpy()] = 1
    start /= np.maximum(start.sum(0), 1)
    flow = start
    for _ in range(steps):
        flow = reach * (smoothing @ flow) + (1 - reach) * start
    total = flow.sum(1, keepdims=True)
    uniform = np.full_like(flow, 1 / n_classes)
    return torch.from_numpy(np.divide(flow, total, out=uniform, where=total > 0))


def pool_targets(log_probs: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    r"""Targets for unlabelled points, with a high weight if model and graph agree.

    With p from the model and f from the graph, :math:`q \propto \sqrt{p f}`. The target is
    :math:`q^4`, normalised. The weight is :math:`0.3 \, (\max_c q_c - 1/C)^2 / (1 - 1/C)^2`.

    Args:
        log_probs: the model's predictions, ``[P, C]``.
        spread: from `spread_labels`, ``[P, C]``.

    Returns:
        Targets ``[P, C]``, and weights ``[P]`` from 0 to 0.3, both float64.
    """
    n_classes = log_probs.shape[1]
    tiny = torch.finfo(torch.float64).tiny  # avoids log 0 where only one probability is 0
    p, f = (opinion.double().clamp_min(tiny) for opinion in (log_probs.double().exp(), spread))
    log_q = (p.log() + f.log()) / 2
    certainty = (log_q.softmax(1).amax(1) * n_classes - 1) / max(n_classes - 1, 1)
    return (4 * log_q).softmax(1), _WEIGHT * certainty.clamp(0, 1).square()
