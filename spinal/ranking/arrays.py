"""Pools in ``.npy`` files, which are memory-mapped, and in ``.npz`` files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.data import ArrayPoints, Points
from spinal.errors import DataError
from spinal.ranking.shards import NUMBERS, Batch, Columns


class ArrayFiles:
    """Arrays ``[N, D]`` or ``[N, H, W, C]``. A ``.npz`` file is read whole, and is one shard."""

    def cuts(self, path: Path, rows: int, columns: Columns) -> list[int]:
        n = len(_open(path, columns))
        return [0, n] if path.suffix == ".npz" else [*range(0, n, rows), n]

    def read(
        self, path: Path, start: int, stop: int, rows: NDArray[np.int64] | None, columns: Columns
    ) -> Iterator[Batch]:
        if columns.ids is not None:
            raise DataError(f"{path}: has no column {columns.ids!r} of names")
        points = _open(path, columns)
        wanted = np.arange(start, stop) if rows is None else rows
        for first in range(0, len(wanted), NUMBERS):
            chosen = wanted[first : first + NUMBERS]
            yield Batch(chosen, points[chosen])


def _open(path: Path, columns: Columns) -> Points:
    try:
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(opened, np.ndarray):
            if columns.items:
                raise DataError("has no columns")
            return _Vectors(opened)
        with opened as arrays:
            names = columns.items or tuple(arrays)
            if len(names) != 1 or names[0] not in arrays:
                raise DataError(f"holds {', '.join(arrays)}: choose one with --column")
            return _Vectors(arrays[names[0]])
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: {error}") from error


class _Vectors(ArrayPoints):
    """Array points without the check for infinite numbers, which the caller does row by row."""

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        batch = self._read(np.asarray(indices, np.int64))
        with np.errstate(over="ignore"):
            return batch if batch.ndim == 4 else batch.astype(np.float32, copy=False)
