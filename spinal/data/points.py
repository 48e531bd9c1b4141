"""Points: the images or feature vectors of a pool, read in batches.

Any object with a length, a ``shape`` and batches by index can be used. `spinal.data.as_points`
wraps data of other kinds; `spinal.data.images.ImageFiles` wraps image files.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError

UNLABELLED = -1  # in an array of labels: no label yet
#: Rows of a mapped file that are read at once. The kernel maps hundreds of kilobytes around a row.
_ROWS = 32


@runtime_checkable
class Points(Protocol):
    """N images, as uint8, or N feature vectors, as float32, with NaN for missing features.

    ``shape`` is (N, H, W, C) or (N, D). ``points[indices]`` gives the batch [B, H, W, C] or [B, D]
    for an array of indices. An index always refers to the same point.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray: ...


class ArrayPoints:
    """Points in one array, which may be memory-mapped: it is only read in batches.

    Args:
        array: Images as uint8, [N, H, W, C] or [N, H, W] (one channel), or features, [N, D], of any
            real type. A feature may be missing (NaN).
    """

    def __init__(self, array: NDArray) -> None:
        if array.ndim == 3:
            array = array[..., None]
        refuse_channels_first(array.shape, "images.transpose(0, 2, 3, 1)")
        if array.ndim == 4 and array.dtype != np.uint8:
            raise DataError(
                f"images of type {array.dtype}: give uint8 arrays "
                "(if the values are 0..1: (255 * images).round().astype('uint8'))"
            )
        if array.ndim not in (2, 4):
            raise DataError(
                f"an array of shape {array.shape}: give images, (N, H, W, C) or (N, H, W), "
                "or features, (N, D)"
            )
        if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
            raise DataError(f"features of type {array.dtype}: give numbers")
        if 0 in array.shape:
            raise DataError(f"an array of shape {array.shape}, which holds no points")
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W, C) for images, (N, D) for features."""
        return self._array.shape

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch [B, H, W, C], uint8, or [B, D], float32, as a copy."""
        batch = self._read(np.asarray(indices, np.int64))
        if batch.ndim == 4:
            return batch
        with np.errstate(over="ignore"):  # values too large for float32 are refused below
            batch = batch.astype(np.float32, copy=False)
        if np.isinf(batch).any():
            row = int(np.asarray(indices)[np.isinf(batch).any(axis=1)][0])
            raise DataError(f"features of point {row} are not all finite numbers")
        return batch

    def _read(self, indices: NDArray[np.int64]) -> NDArray:
        """The rows, as a copy. The pages of a mapped file are unmapped after every few rows.

        Mapped pages count as memory of this process. The kernel keeps them in its cache, so reading
        them again costs little.
        """
        mapping = self._mapping()
        if mapping is None:
            return np.ascontiguousarray(self._array[indices])
        batch = np.empty((len(indices), *self._array.shape[1:]), self._array.dtype)
        for start in range(0, len(indices), _ROWS):
            rows = slice(start, start + _ROWS)
            batch[rows] = self._array[indices[rows]]
            mapping.madvise(mmap.MADV_DONTNEED)
        return batch

    def _mapping(self) -> mmap.mmap | None:
        """The mapped file that holds the array; None if it is in memory or must not be unmapped."""
        source: object = self._array
        while isinstance(source, np.ndarray) and not isinstance(source, np.memmap):
            source = source.base
        # In mode "c", unmapping would lose changes, which are private to this process.
        if not isinstance(source, np.memmap) or source.mode == "c":
            return None
        mapping = getattr(source, "_mmap", None)
        can_unmap = isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")
        return mapping if can_unmap else None


def refuse_channels_first(shape: tuple[int, ...], line: str) -> None:
    """Refuse images ``[N, C, H, W]``, which would be taken for images of C rows.

    Args:
        shape: Shape of an array.
        line: The Python expression that moves the channels.
    """
    channels = (1, 3, 4)
    if len(shape) == 4 and shape[1] in channels and shape[3] not in channels:
        raise DataError(
            f"images of shape {tuple(shape)} have their channels first: move them to the end, "
            f"{line}"
        )


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class LabelledPoints:
    """Points, the class of each, and the files that were left out.

    Attributes:
        points: N points.
        labels: int64 array [N], indices into ``classes``; -1 where there is no label.
        classes: Names of the classes; empty if they are unknown.
        skipped: Files that could not be read. They have no index.
    """

    points: Points
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()


def encode_labels(
    names: Sequence[str], classes: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Indices of class names, and the classes.

    Without ``classes``, the names are sorted, by value if all are numbers. An empty name means
    unlabelled.
    """
    if classes is None:
        sorted_names = sorted({name for name in names if name})
        if all(name.isdecimal() for name in sorted_names):
            sorted_names.sort(key=int)
        classes = sorted_names
    number = {name: i for i, name in enumerate(classes)} | {"": UNLABELLED}
    if unknown := sorted(set(names) - set(number)):
        raise DataError(f"unknown class {unknown[0]!r}; the classes are {', '.join(classes)}")
    return np.array([number[name] for name in names], np.int64), tuple(classes)


def iter_batches(points: Points, indices: NDArray[np.int64], size: int = 512) -> Iterator[NDArray]:
    """The points at ``indices``, in order, in batches of at most ``size``."""
    for start in range(0, len(indices), size):
        yield points[indices[start : start + size]]
