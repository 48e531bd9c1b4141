"""Points that are not one array: encoded items, items of a dataset, sparse rows, several sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.data.points import ArrayPoints, Points, refuse_channels_first
from spinal.errors import DataError


class FittedPoints:
    """Feature vectors of texts or table rows, computed by an encoder that was fitted to the pool.

    Args:
        items: N texts, or a table with N rows.
        encode: Maps such items to ``[N, D]``.
        n_fitted: How many items the encoder was fitted to.

    Attributes:
        items: As given.
        n_fitted: As given.
    """

    def __init__(self, items: Any, encode: Callable[[Any], NDArray], n_fitted: int) -> None:
        self.items, self.n_fitted = items, n_fitted
        self._encode, self._vectors = encode, ArrayPoints(encode(items))

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return self._vectors.shape

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch [B, D], float32."""
        return self._vectors[indices]

    def like(self, items: Any) -> FittedPoints:
        """Other items, encoded by the same encoder."""
        return FittedPoints(items, self._encode, self.n_fitted)


class ItemPoints:
    """Points that are items of a sequence, read one by one when a batch is requested.

    An item must be the same whenever it is read: no random augmentation.

    Args:
        items: Images or vectors.
        read: Returns the array of an item.
    """

    def __init__(self, items: Any, read: Callable[[Any], NDArray]) -> None:
        self._items, self._read = items, read
        first = read(items[0])
        line = "x.permute(1, 2, 0)" if first.dtype == np.uint8 else (
            "(255 * x).round().byte().permute(1, 2, 0)"
        )  # fmt: skip
        refuse_channels_first((len(items), *first.shape), line)
        self._item_shape = first.shape
        self.shape: tuple[int, ...] = (len(items), *ArrayPoints(first[None]).shape[1:])

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch, as in `ArrayPoints`."""
        batch = []
        for i in np.arange(len(self))[np.asarray(indices, np.int64)].tolist():
            batch.append(self._read(self._items[i]))
            if batch[-1].shape != self._item_shape:
                raise DataError(
                    f"item {i} has the shape {batch[-1].shape}, the first one {self._item_shape}: "
                    "bring all to the same shape (images: image.resize((32, 32)))"
                )
        if not batch:
            return np.empty((0, *self.shape[1:]), np.float32)
        return ArrayPoints(np.stack(batch))[np.arange(len(batch))]


class SparsePoints:
    """Features in a SciPy sparse matrix; a batch is dense.

    Args:
        matrix: [N, D].
    """

    def __init__(self, matrix: Any) -> None:
        self._rows = matrix.tocsr()
        self.shape: tuple[int, ...] = tuple(matrix.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch [B, D], float32."""
        batch = self._rows[np.asarray(indices, np.int64)].toarray()
        return ArrayPoints(batch)[np.arange(len(batch))] if len(batch) else batch


class JoinedPoints:
    """Several sets of points, one after the other.

    Args:
        parts: Points of the same shape.
    """

    def __init__(self, *parts: Points) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)])
        self.shape: tuple[int, ...] = (int(self._starts[-1]), *parts[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch, in the order of ``indices``."""
        at = np.asarray(indices, np.int64)
        part_of = np.searchsorted(self._starts, at, side="right") - 1
        batches = [part[at[part_of == i] - self._starts[i]] for i, part in enumerate(self.parts)]
        rows = np.concatenate([np.flatnonzero(part_of == i) for i in range(len(self.parts))])
        batch = np.concatenate([b for b in batches if len(b)] or batches[:1])
        return batch[np.argsort(rows)]

    @property
    def like(self) -> Callable[[Any], Points] | None:
        """The function that encodes more data like the first part; None if it has none."""
        return getattr(self.parts[0], "like", None)

    @property
    def n_fitted(self) -> int | None:
        """How many items the encoder of the first part was fitted to; None if it has none."""
        return getattr(self.parts[0], "n_fitted", None)
