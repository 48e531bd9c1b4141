"""Merges sorted parts into one sorted file, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.ranking.order import best_first, chances
from spinal.ranking.shards import import_arrow

#: Approximate number of rows that are sorted at once.
_BUCKET = 1 << 20

#: A place in the order: minus the score, then a random number.
Key = tuple[float, int]


def merged(parts: Sequence[Path], seed: int, bucket: int = _BUCKET) -> Iterator[Any]:
    """The rows of sorted parts, in order, as tables of about ``bucket`` rows.

    This is a sample sort: keys taken from every part at equal steps divide the order into buckets.
    A bucket consists of one slice of each part; parts are memory-mapped.

    Args:
        parts: Arrow files with the columns ``score`` and ``position``, each in order.
        seed: of the order; see `best_first`.
        bucket: number of rows to hold. With a step of s rows in each of P parts, a bucket has at
            most ``bucket + P s`` rows.
    """
    arrow = import_arrow()
    if not parts:
        return
    sizes = [len(read_part(path)) for path in parts]
    step = max(1, bucket // (4 * max(1, len(parts))))
    sampled = [_keys(read_part(path), seed, step) for path in parts]
    falling, numbers = (np.concatenate(column) for column in zip(*sampled, strict=True))
    every = max(1, bucket // step)
    chosen = np.lexsort((numbers, falling))[every::every]
    cuts: list[Key] = [(float(falling[i]), int(numbers[i])) for i in chosen]
    before = [0] * len(parts)
    for cut in [*cuts, None]:
        slices = []
        for i, path in enumerate(parts):
            if before[i] == sizes[i]:
                continue
            table = read_part(path)
            stop = sizes[i] if cut is None else _rows_before(table, cut, seed)
            if stop > before[i]:
                slices.append(table.slice(before[i], stop - before[i]))
                before[i] = stop
        if slices:
            rows = arrow.concat_tables(slices)
            order = best_first(_numbers(rows, "score"), _numbers(rows, "position"), seed)
            yield rows.take(arrow.array(order))


def read_part(path: Path) -> Any:
    """The table in an Arrow file, memory-mapped."""
    arrow = import_arrow()
    with arrow.memory_map(str(path)) as source:
        return arrow.ipc.open_file(source).read_all()


def _numbers(table: Any, name: str) -> NDArray:
    return table.column(name).to_numpy()


def _keys(table: Any, seed: int, step: int) -> tuple[NDArray, NDArray[np.uint64]]:
    """The keys of every ``step``-th row: minus the scores, and random numbers."""
    scores, positions = (_numbers(table, name)[::step] for name in ("score", "position"))
    return -scores, chances(positions, seed)


def _rows_before(table: Any, cut: Key, seed: int) -> int:
    """The number of rows whose keys are less than ``cut``."""
    falling = -_numbers(table, "score")
    low, high = (int(np.searchsorted(falling, cut[0], side)) for side in ("left", "right"))
    equal = chances(_numbers(table, "position")[low:high], seed)
    return low + int(np.searchsorted(equal, np.uint64(cut[1])))
