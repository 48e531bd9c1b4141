"""The order of points over all shards: by score, with ties in random order.

The random number of a point is a hash of its position in the pool, so that every shard can compute
it independently. The hash is a permutation of the 64-bit numbers: no two points share one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Number of positions that are hashed at once.
_BLOCK = 1 << 20


def chances(positions_N: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Random numbers ``[N]``: SplitMix64 (Steele et al., 2014) of seed + position."""
    with np.errstate(over="ignore"):
        x = positions_N.astype(np.uint64)
        x += np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def best_first(scores_N: NDArray, positions_N: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Indices ``[N]`` that sort points: highest scores first, ties in random order."""
    return np.lexsort((chances(positions_N, seed), -scores_N))


def draw(n: int, k: int, seed: int, without: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending positions of ``k`` of ``n`` points, drawn uniformly; all if there are fewer.

    They are the points with the lowest random numbers, found one block at a time.

    Args:
        n: number of points.
        k: number of points to draw.
        seed: random seed.
        without: positions that are not drawn.
    """
    drawn = np.empty(0, np.int64)
    for start in range(0, n, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, n))
        drawn = np.concatenate([drawn, np.setdiff1d(block, without, assume_unique=True)])
        if len(drawn) > k:
            drawn = drawn[np.argpartition(chances(drawn, seed), k)[:k]]
    return np.sort(drawn)
