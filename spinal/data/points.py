"""Points: the images or feature vectors of a pool, read in batches.

Any object with a length, a ``shape`` and batches by index will do. `as_points` wraps NumPy arrays;
`spinal.data.images.ImageFiles` wraps image files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinal.errors import DataError

UNLABELLED = -1  # in an array of labels: no label yet


@runtime_checkable
class Points(Protocol):
    """N images, as uint8, or N feature vectors, as float32.

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
            real type.
    """

    def __init__(self, array: NDArray) -> None:
        if array.ndim == 3:
            array = array[..., None]
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
        batch = np.ascontiguousarray(self._array[np.asarray(indices, np.int64)])
        if batch.ndim == 4:
            return batch
        with np.errstate(over="ignore"):  # values too large for float32 are refused below
            batch = batch.astype(np.float32, copy=False)
        if not np.isfinite(batch).all():
            row = int(np.asarray(indices)[~np.isfinite(batch).all(axis=1)][0])
            raise DataError(f"features of point {row} are not all finite numbers")
        return batch


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


def as_points(data: ArrayLike | Points) -> Points:
    """Points from an array; points are returned unchanged."""
    if isinstance(data, np.ndarray):
        return ArrayPoints(data)
    if isinstance(data, Points):
        return data
    return ArrayPoints(np.asarray(data))


def from_arrays(
    data: ArrayLike | Points, labels: ArrayLike | None = None, classes: Sequence[str] | None = None
) -> LabelledPoints:
    """Points and labels from arrays.

    Labels are indices into ``classes`` if they are whole numbers (-1: unlabelled), and names of
    classes if they are strings ("": unlabelled). Without ``classes``, the classes of whole numbers
    are named "0" to their maximum, and those of strings are the sorted names.

    Args:
        data: Images, uint8 [N, H, W, C] or [N, H, W], or features [N, D].
        labels: [N] whole numbers or strings; None if nothing is labelled.
        classes: Names of the classes.
    """
    points = as_points(data)
    if labels is None:
        return LabelledPoints(
            points, np.full(len(points), UNLABELLED, np.int64), tuple(classes or ())
        )
    array = np.asarray(labels)
    if array.shape != (len(points),):
        raise DataError(f"{len(points)} points, but labels of shape {array.shape}")
    if array.dtype.kind in "UO":
        encoded, names = encode_labels([str(label) for label in array], classes)
        return LabelledPoints(points, encoded, names)
    if array.dtype.kind not in "iu":
        raise DataError(f"labels of type {array.dtype}: give whole numbers or names")
    if classes is None:
        names = tuple(str(c) for c in range(int(array.max()) + 1))
    else:
        names = tuple(classes)
    if array.min() < UNLABELLED or array.max() >= len(names):
        raise DataError(
            f"labels from {array.min()} to {array.max()}, but {len(names)} classes "
            f"(0 to {len(names) - 1}; {UNLABELLED} for unlabelled)"
        )
    return LabelledPoints(points, array.astype(np.int64), names)


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
