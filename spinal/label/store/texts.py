"""The texts of a project, in a SQLite file that is made from their source.

A text is identified by a hash of its content. So a label stays with its text when rows are added to
the table or files are moved, and a text that occurs twice is asked once.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from spinal.data.text_files import find_text_files, is_table, read_column, read_text_file
from spinal.errors import DataError
from spinal.label.store.pictures import locate

_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
-- Where each text occurs: the number of a row, from 1, or the path of a file in the folder.
CREATE TABLE IF NOT EXISTS places (
    id INTEGER PRIMARY KEY, place TEXT NOT NULL, name TEXT NOT NULL REFERENCES texts
);
CREATE INDEX IF NOT EXISTS places_by_name ON places (name);
CREATE TABLE IF NOT EXISTS source (state TEXT NOT NULL);  -- when it was last read
"""


class Texts:
    """The texts of a table or of a folder of ``.txt`` files; threads and processes may share it.

    Args:
        path: the SQLite file; it can be deleted at any time.
        source: the table or folder.
        column: of the table.
    """

    def __init__(self, path: Path, source: Path, column: str) -> None:
        self.source, self.column = source, column
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(_SCHEMA)

    @property
    def place_name(self) -> str:
        """What identifies a place: ``row`` or ``path``."""
        return "row" if is_table(self.source) else "path"

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def refresh(self) -> list[str]:
        """Read the source if it has changed; the names of all texts, in order.

        Raises:
            DataError: if it cannot be read.
        """
        state = self._source_state()
        if self._all("SELECT 1 FROM source WHERE state = ?", state) == []:
            places = [(place, text) for place, text in self._read() if text.strip()]
            named = [(place, text_name(text), text) for place, text in places]
            with self._lock, self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for table in ("places", "texts", "source"):
                    self._db.execute(f"DELETE FROM {table}")
                self._db.executemany(
                    "INSERT OR IGNORE INTO texts VALUES (?, ?)", [row[1:] for row in named]
                )
                self._db.executemany(
                    "INSERT INTO places (place, name) VALUES (?, ?)", [row[:2] for row in named]
                )
                self._db.execute("INSERT INTO source VALUES (?)", [state])
        rows = self._all("SELECT name FROM places GROUP BY name ORDER BY min(id)")
        return [name for (name,) in rows]

    def text(self, name: str) -> str:
        """A text.

        Raises:
            DataError: if it is no longer there.
        """
        rows = self._all("SELECT text FROM texts WHERE name = ?", name)
        if not rows:
            raise DataError(f"no longer in {self.source.name}")
        return rows[0][0]

    def places(self, name: str) -> list[str]:
        """Where a text occurs: numbers of rows, or paths."""
        rows = self._all("SELECT place FROM places WHERE name = ? ORDER BY id", name)
        return [place for (place,) in rows]

    def title(self, name: str) -> str:
        """Where a text occurs, for the user."""
        places = self.places(name)
        first = f"{self.place_name} {places[0]}" if is_table(self.source) else places[0]
        return first if len(places) == 1 else f"{first}, and {len(places) - 1} more like it"

    def containing(self, words: str) -> set[str]:
        """The names of the texts that contain these words, ignoring case."""
        rows = self._all("SELECT name FROM texts WHERE instr(lower(text), lower(?))", words)
        return {name for (name,) in rows}

    def problem(self, name: str) -> str | None:
        """Why a text cannot be shown; None if it can."""
        try:
            self.text(name)
        except DataError as error:
            return str(error)
        return None

    def all_texts(self) -> list[str]:
        """All texts, each once, in order."""
        rows = self._all(
            "SELECT text FROM texts JOIN places USING (name) GROUP BY name ORDER BY min(places.id)"
        )
        return [text for (text,) in rows]

    def _read(self) -> Iterator[tuple[str, str]]:
        """Places and texts of the source."""
        if is_table(self.source):
            for i, text in enumerate(read_column(self.source, self.column), 1):
                yield str(i), clean(text)
        else:
            for name in find_text_files(self.source):
                try:
                    yield name, clean(read_text_file(locate(self.source, name)))
                except DataError:  # a link out of the folder, or a file that cannot be read
                    continue

    def _source_state(self) -> str:
        """A hash that changes with the source: of the sizes and times of its files."""
        try:
            names = [""] if is_table(self.source) else list(find_text_files(self.source))
            stats = [os.stat(self.source / name) for name in names]
        except OSError as error:
            raise DataError(f"{self.source}: {error.strerror}") from error
        parts = [f"{n}\0{s.st_size}\0{s.st_mtime_ns}" for n, s in zip(names, stats, strict=True)]
        return hashlib.blake2b("\n".join([self.column, *parts]).encode()).hexdigest()

    def _all(self, query: str, *values: str) -> list[tuple]:
        with self._lock:
            return self._db.execute(query, values).fetchall()


def text_name(text: str) -> str:
    """The name of a text: the hash under which `spinal.encoders.vectors` stores its vector."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def clean(text: str) -> str:
    """A text without characters that cannot be stored: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")
