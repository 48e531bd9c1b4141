"""Random draws of points for several purposes, as indices of the pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinal.data import Pool

Indices = NDArray[np.int64]

#: Number of points whose predictions `ActiveLearner.advice` compares.
_WATCHED = 500


def draw_unlabelled(pool: Pool, n: int, seed: int) -> Indices:
    """At most ``n`` points without a label, drawn at random, in ascending order."""
    left = np.setdiff1d(pool.members, pool.labelled_indices)
    if len(left) > n:
        left = np.sort(np.random.default_rng(seed).choice(left, n, replace=False))
    return left


def pool_to_learn_from(pool: Pool, n: int) -> Indices:
    """The same ``n`` points of the pool each time, then the labelled points not among them."""
    members = np.sort(pool.members)
    if len(members) > n:
        # The same for all learners, so that cached results for these points can be reused.
        # Points that are added to the pool later do not change the numbers of earlier points.
        numbers = np.random.default_rng(0).random(len(pool.points))
        members = np.sort(members[np.argsort(numbers[members])[:n]])
    others = np.setdiff1d(pool.labelled_indices, members)
    return np.concatenate([members, others])


def draw_watched(pool: Pool, seed: int) -> Indices:
    """Unlabelled points whose predictions are compared from round to round, ascending."""
    left = np.setdiff1d(pool.members, pool.labelled_indices)
    return np.sort(np.random.default_rng(seed).permutation(left)[:_WATCHED])
