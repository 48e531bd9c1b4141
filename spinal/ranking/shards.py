"""Shards: ranges of rows of the files of a pool, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinal.errors import SpinalError

#: Rows that are read at once: of numbers, and of items that have to be encoded.
NUMBERS, ITEMS = 4096, 256

#: Vectors ``[N, D]`` or images ``[N, H, W, C]`` as an array; texts; or contents of image files.
Items = NDArray | list[str] | list[bytes]


@dataclass(frozen=True)
class Shard:
    """Rows ``start`` to ``stop`` of a file.

    Attributes:
        number: of the shard, from 0.
        file: number of the file, from 0.
        path: of the file.
        first: position in the pool of row ``start``.
        start: the first row.
        stop: the row after the last.
    """

    number: int
    file: int
    path: Path
    first: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def rows_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows in the file of those of the ascending positions that are in this shard."""
        low, high = np.searchsorted(positions, [self.first, self.first + len(self)])
        return positions[low:high] - self.first + self.start


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a file.

    Attributes:
        rows: their numbers in the file, ``[N]``, ascending.
        items: their contents.
        ids: their names, if they have any.
    """

    rows: NDArray[np.int64]
    items: Items
    ids: list[str] | None = None


@dataclass(frozen=True)
class Columns:
    """What is read from each row.

    Attributes:
        items: the column with the vectors, texts or images, or several columns of numbers; of a tar
            file, the extension. Empty: the only one that is possible.
        ids: the column with names of the points, if there is one.
    """

    items: tuple[str, ...] = ()
    ids: str | None = None


class Format(Protocol):
    """How a kind of file is read."""

    def cuts(self, path: Path, rows: int, columns: Columns) -> list[int]:
        """Ascending rows at which a file may be cut, with 0 and its length, about ``rows`` apart.

        Raises:
            DataError: if the file is damaged.
        """

    def read(
        self, path: Path, start: int, stop: int, rows: NDArray[np.int64] | None, columns: Columns
    ) -> Iterator[Batch]:
        """Read a shard in batches.

        Args:
            path: the file.
            start: the first row.
            stop: the row after the last.
            rows: the rows that are wanted, ascending; None for all.
            columns: what is read.

        Raises:
            DataError: if the file is damaged or lacks the columns.
        """


def import_arrow() -> Any:
    """The package pyarrow, with its modules for Parquet and compute.

    Raises:
        SpinalError: if it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise SpinalError(
            f"spinal rank needs the package pyarrow: pip install 'spinal[parquet]' ({error})"
        ) from error
    return pyarrow
