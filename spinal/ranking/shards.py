"""Shards, which are ranges of rows of the files of a pool, and the data read from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinal.errors import SpinalError

#: Number of rows that are read at once: of numbers, and of items that have to be encoded.
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
        """The rows in the file of the ascending positions that are in this shard."""
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
        items: the column with the vectors, texts or images, or several columns of numbers; for tar
            files, the extension. If empty, the only possible one.
        ids: the column with names of the points; None if there is none.
    """

    items: tuple[str, ...] = ()
    ids: str | None = None


class Format(Protocol):
    """A reader for a file format."""

    def cuts(self, path: Path, rows: int, columns: Columns) -> list[int]:
        """Ascending rows at which to split a file, about ``rows`` apart, with 0 and its length.

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
            rows: the rows to read, ascending; None for all.
            columns: the columns to read.

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
