"""The order of points that are spread over shards: by score, and equal ones by chance.

Chance is a hash of the position of a point in the pool, so that every shard can compute it alone.
The hash is a permutation of the 64-bit numbers: no two points share theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Positions that are hashed at once.
_BLOCK = 1 << 20


def chances(positions_N: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """A number for each position, ``[N]``: SplitMix64 (Steele et al., 2014) of seed + position."""
    with np.errstate(over="ignore"):
        x = positions_N.astype(np.uint64)
        x += np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def best_first(scores_N: NDArray, positions_N: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Indices ``[N]`` that sort points: highest scores first, equal ones by chance."""
    return np.lexsort((chances(positions_N, seed), -scores_N))


def draw(n: int, k: int, seed: int, without: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending positions of ``k`` of ``n`` points, all equally probable; all, if there are fewer.

    They are the points with the lowest chances, found a block at a time.

    Args:
        n: number of points.
        k: number of points to draw.
        seed: of the draw.
        without: positions that are not drawn.
    """
    drawn = np.empty(0, np.int64)
    for start in range(0, n, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, n))
        drawn = np.concatenate([drawn, np.setdiff1d(block, without, assume_unique=True)])
        if len(drawn) > k:
            drawn = drawn[np.argpartition(chances(drawn, seed), k)[:k]]
    return np.sort(drawn)
