"""Vectors on disk, indexed by the content that they were computed from; append-only.

A folder holds two files:

- ``vectors.f32``: vectors of D numbers in float32 (``vectors.u8``: bytes), one after the other;
- ``index.sqlite``: which content has which row, and which content each file had when last read.

Each row has a checksum in the index; `Vectors.repair` finds damaged rows.

Rows are written and flushed before they are added to the index. If the process is killed at any
moment, all rows in the index are complete, and rows beyond them are overwritten later. Any number
of processes can read and write: SQLite allows one writer at a time, and any number of readers.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinal.encoders.encoder import EncoderError
from spinal.errors import FileFormatError

_FLOAT = np.dtype("<f4")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (
    hash BLOB PRIMARY KEY,
    place INTEGER UNIQUE,  -- row of its vector; NULL: this content cannot be used
    reason TEXT,           -- why not
    checksum INTEGER       -- CRC-32 of its vector; NULL: written by an older version
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
    path BLOB PRIMARY KEY,  -- bytes: file names need not be valid text
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,  -- nanoseconds
    hash BLOB NOT NULL
) WITHOUT ROWID;
"""


class DamagedVectorsError(FileFormatError):
    """The stored vectors cannot be read."""


class Entry(NamedTuple):
    """The row of a content, or the reason why it has none."""

    place: int | None
    reason: str | None


class FileState(NamedTuple):
    """Path, size and modification time; while they are unchanged, so is the content."""

    path: bytes
    size: int
    modified: int


class Vectors:
    """The vectors in a folder; safe for use by several threads and processes.

    Args:
        folder: created if it does not exist.
        width: D.
        dtype: type of the stored numbers: float32 or uint8.

    Attributes:
        file: the vectors, one after the other.
    """

    def __init__(self, folder: Path, width: int, dtype: np.dtype = _FLOAT) -> None:
        self.folder, self.width, self.dtype = folder, width, dtype
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"vectors.{dtype.kind}{8 * dtype.itemsize}"
        self.file.touch()
        self._lock = threading.Lock()
        try:
            self._index = sqlite3.connect(
                folder / "index.sqlite", timeout=60, isolation_level=None, check_same_thread=False
            )
            self._index.execute("PRAGMA journal_mode = WAL")
            # A power cut may undo the last transactions; those vectors are computed again.
            self._index.execute("PRAGMA synchronous = NORMAL")
            self._index.executescript(_SCHEMA)
            columns = {row[1] for row in self._index.execute("PRAGMA table_info(contents)")}
            if "checksum" not in columns:
                self._index.execute("ALTER TABLE contents ADD COLUMN checksum INTEGER")
            self._check_width()
        except sqlite3.DatabaseError as error:
            raise self._damaged(f"its index cannot be read ({error})") from error

    def _check_width(self) -> None:
        """Store the width in the index; refuse an index with another width."""
        (width,) = self._index.execute("PRAGMA user_version").fetchone()
        if width == 0:  # new, or written before the width was stored
            self._index.execute(f"PRAGMA user_version = {self.width}")
        elif width != self.width:
            raise self._damaged(f"its vectors have {width} numbers, not {self.width}")

    def __len__(self) -> int:
        count = self._row("SELECT count(place) FROM contents")
        return 0 if count is None else count[0]

    def close(self) -> None:
        """Close the files."""
        self._index.close()

    def find(self, content: bytes) -> Entry | None:
        """The entry of the content with this hash; None if there is none."""
        row = self._row("SELECT place, reason FROM contents WHERE hash = ?", content)
        return None if row is None else Entry(*row)

    def find_file(self, state: FileState) -> Entry | None:
        """The entry of a file in this state; None if there is none."""
        row = self._row(
            "SELECT place, reason FROM files JOIN contents USING (hash) "
            "WHERE path = ? AND size = ? AND modified = ?",
            *state,
        )
        return None if row is None else Entry(*row)

    def places(self, contents: Iterable[bytes]) -> NDArray[np.int64]:
        """The rows ``[N]`` of contents; -1 where there is none."""
        entries = (self.find(content) for content in contents)
        return np.array(
            [-1 if e is None or e.place is None else e.place for e in entries], np.int64
        )

    def read(self, places: NDArray[np.int64]) -> NDArray:
        """The vectors ``[N, D]`` in these rows, float32 or uint8."""
        if not len(places):
            return np.empty((0, self.width), self.dtype.newbyteorder("="))
        rows = self.file.stat().st_size // (self.dtype.itemsize * self.width)
        if places.max() >= rows:
            raise self._damaged(f"{self.file.name} has {rows} rows, the index more")
        # Mapped again each time: mapped pages count as memory of this process.
        mapped = np.memmap(self.file, self.dtype, "r", shape=(rows, self.width))
        return mapped[places].astype(self.dtype.newbyteorder("="), copy=False)

    def add(
        self,
        hashes: Sequence[bytes],
        vectors: NDArray,
        refused: Iterable[tuple[bytes, str]] = (),
        files: Iterable[tuple[FileState, bytes]] = (),
    ) -> None:
        """Append vectors and their index entries, in one transaction.

        Args:
            hashes: hashes of N contents. Stored contents, and repeated ones, are skipped.
            vectors: ``[N, D]``.
            refused: hashes of contents that cannot be used, each with the reason.
            files: states of files, each with the hash of its content.

        Raises:
            EncoderError: if the vectors have another shape.
        """
        if vectors.shape != (len(hashes), self.width):
            raise EncoderError(
                f"vectors of shape {vectors.shape} for {len(hashes)} items: "
                f"the encoder should give [{len(hashes)}, {self.width}]"
            )
        with self._transaction() as index:
            lookup = "SELECT 1 FROM contents WHERE hash = ?"
            new = {
                content: i
                for i, content in enumerate(hashes)
                if index.execute(lookup, [content]).fetchone() is None
            }
            (first,) = index.execute("SELECT coalesce(max(place) + 1, 0) FROM contents").fetchone()
            rows = [row.tobytes() for row in vectors[list(new.values())].astype(self.dtype)]
            with self.file.open("r+b") as file:
                file.seek(self.dtype.itemsize * self.width * first)
                file.write(b"".join(rows))
                file.flush()
                os.fsync(file.fileno())
            insert = "INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?)"
            added = zip(new, rows, strict=True)
            index.executemany(
                insert,
                [(h, first + i, None, zlib.crc32(row)) for i, (h, row) in enumerate(added)],
            )
            index.executemany(insert, [(h, None, reason, None) for h, reason in refused])
            index.executemany(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)",
                [(*state, content) for state, content in files],
            )

    def repair(self) -> int:
        """Remove vectors that do not match their checksums; return how many.

        They are computed again like those of new files.
        """
        size = self.dtype.itemsize * self.width
        damaged = []
        with self._lock, self.file.open("rb") as file:
            for place, checksum in self._index.execute(
                "SELECT place, checksum FROM contents WHERE checksum IS NOT NULL ORDER BY place"
            ):
                file.seek(size * place)
                if zlib.crc32(file.read(size)) != checksum:
                    damaged.append((place,))
        if damaged:
            with self._transaction() as index:
                index.executemany("DELETE FROM contents WHERE place = ?", damaged)
        return len(damaged)

    def _row(self, query: str, *values: bytes | int) -> tuple | None:
        with self._lock:
            return self._index.execute(query, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """An exclusive write transaction: committed at the end, rolled back after an error."""
        with self._lock:
            self._index.execute("BEGIN IMMEDIATE")
            try:
                yield self._index
            except BaseException:
                self._index.execute("ROLLBACK")
                raise
            self._index.execute("COMMIT")

    def _damaged(self, what: str) -> DamagedVectorsError:
        return DamagedVectorsError(
            f"{self.folder}: damaged, {what}; delete this folder, it will be computed again"
        )


class StoredVectors:
    """Points that are rows of `Vectors`, read from disk when a batch is requested.

    Args:
        vectors: where they are stored.
        places: their rows, ``[N]``.
        point: the shape of a point, if it is not (D,).
    """

    def __init__(
        self, vectors: Vectors, places: NDArray[np.int64], point: tuple[int, ...] = ()
    ) -> None:
        self._vectors, self.places = vectors, places
        self._point = point or (vectors.width,)

    @property
    def shape(self) -> tuple[int, ...]:
        """N, and the shape of a point."""
        return len(self.places), *self._point

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray:
        """The batch ``[B, ...]``."""
        rows = self._vectors.read(self.places[np.asarray(indices, np.int64)])
        return rows.reshape(len(rows), *self._point)


def content_hash(content: bytes) -> bytes:
    """A hash of a content, 16 bytes."""
    return hashlib.blake2b(content, digest_size=16).digest()
