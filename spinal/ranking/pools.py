"""A pool in files: finds the files, orders them, and splits them into shards."""

from __future__ import annotations

import glob
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinal.errors import DataError
from spinal.ranking.arrays import ArrayFiles
from spinal.ranking.parquet import ParquetFiles
from spinal.ranking.shards import Batch, Columns, Format, Shard
from spinal.ranking.tars import TarFiles

#: Readers of files, by suffix.
FORMATS: dict[str, Format] = {
    ".parquet": ParquetFiles(),
    ".npy": ArrayFiles(),
    ".npz": ArrayFiles(),
    ".tar": TarFiles(),
    ".tar.gz": TarFiles(),
}
#: Maximum number of rows of a shard, if files can be split.
ROWS = 1 << 18


@dataclass(frozen=True)
class FilePool:
    """Files of one format. The position of a point counts rows, file after file.

    Attributes:
        suffix: a key of `FORMATS`.
        names: paths of the files, relative to their common folder.
        shards: all rows, split into shards.
        fingerprint: changes with names, sizes and times of the files.
    """

    suffix: str
    names: tuple[str, ...]
    shards: tuple[Shard, ...] = field(repr=False)
    fingerprint: str

    def __len__(self) -> int:
        return sum(len(shard) for shard in self.shards)

    def positions(self, table: pd.DataFrame, where: str) -> NDArray[np.int64]:
        """The ascending positions of points, given as a table with ``shard`` and ``row``.

        Raises:
            DataError: if it has no such columns, or points that are not in the pool.
        """
        if missing := {"shard", "row"} - set(table.columns):
            raise DataError(f"{where}: has no column {sorted(missing)[0]!r}")
        starts = {self.names[shard.file]: shard.first for shard in reversed(self.shards)}
        lengths = dict.fromkeys(self.names, 0)
        for shard in self.shards:
            lengths[self.names[shard.file]] += len(shard)
        for name, row in zip(table["shard"].astype(str), table["row"], strict=True):
            if not 0 <= row < lengths.get(name, 0):
                raise DataError(f"{where}: the pool has no row {row} of {name}")
        first = table["shard"].astype(str).map(starts).to_numpy(np.int64)
        return np.unique(first + table["row"].to_numpy(np.int64))


def find_pool(
    place: str | Path | Sequence[str | Path], columns: Columns, rows: int = ROWS
) -> FilePool:
    """The pool in a file, in a folder, in files that match a pattern, or in a list of these.

    Args:
        place: such as ``"pool/"`` or ``"pool/part-*.parquet"``. Files are ordered by name.
        columns: what will be read.
        rows: maximum number of rows of a shard, if files can be split.

    Raises:
        DataError: if there are no readable files, or files of several formats.
    """
    places = [place] if isinstance(place, str | Path) else list(place)
    files = [file for each in places for file in _files(str(each))]
    if not files:
        raise DataError(f"{places[0] if places else 'no place'}: no {', '.join(FORMATS)} files")
    suffixes = sorted({_suffix(path) for path in files})
    if len(suffixes) > 1:
        raise DataError(f"{places[0]}: holds {' and '.join(suffixes)} files; give one kind")
    base = files[0].parent
    while not all(path.is_relative_to(base) for path in files):
        base = base.parent
    shards: list[Shard] = []
    digest, first = hashlib.sha256(str(rows).encode()), 0
    names = tuple(path.relative_to(base).as_posix() for path in files)
    for number, (name, path) in enumerate(zip(names, files, strict=True)):
        cuts = FORMATS[suffixes[0]].cuts(path, rows, columns)
        for start, stop in itertools.pairwise(cuts):
            if stop > start:
                shards.append(Shard(len(shards), number, path, first, start, stop))
                first += stop - start
        status = path.stat()
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    if not shards:
        raise DataError(f"{places[0]}: holds no points")
    return FilePool(suffixes[0], names, tuple(shards), digest.hexdigest()[:16])


def read_shard(
    shard: Shard, columns: Columns, rows: NDArray[np.int64] | None = None
) -> Iterator[Batch]:
    """The rows of a shard in batches; only ``rows`` if given."""
    reader = FORMATS[_suffix(shard.path)]
    yield from reader.read(shard.path, shard.start, shard.stop, rows, columns)


def _suffix(path: Path) -> str:
    """The suffix that determines the format; empty if there is none."""
    return next((suffix for suffix in sorted(FORMATS, key=len, reverse=True)
                 if path.name.endswith(suffix)), "")  # fmt: skip


def _files(place: str) -> list[Path]:
    path = Path(place).expanduser().resolve()
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.is_file()]
    elif path.is_file():
        if not _suffix(path):
            raise DataError(f"{path}: give {', '.join(FORMATS)} files")
        return [path]
    else:
        found = [Path(each).resolve() for each in glob.glob(str(path), recursive=True)]
        if not found:
            raise DataError(f"{place}: no such file or folder")
    return sorted(each for each in found if _suffix(each) and not each.name.startswith("."))
