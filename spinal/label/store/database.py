"""A SQLite file that threads share, and transactions on it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from spinal.errors import FileFormatError

VERSION = 2
#: What makes a file of the next version from one of this.
_MIGRATIONS = {
    1: (
        "ALTER TABLE images RENAME COLUMN holdout TO reserved",
        "ALTER TABLE rounds RENAME COLUMN tested_on TO audited",
        "ALTER TABLE rounds ADD COLUMN accuracy REAL",
        "UPDATE rounds SET accuracy = 1.0 * correct / audited WHERE audited > 0",
    ),
}


class Database:
    """A SQLite file, created from ``schema.sql`` if it does not exist, and brought up to date.

    Threads may share an object; each process opens its own. A transaction is on disk when it ends:
    neither a killed process nor a power cut undoes it.

    Raises:
        FileFormatError: if the file is not a database of labels, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._db.row_factory = sqlite3.Row
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._prepare()
        except sqlite3.DatabaseError as error:
            raise FileFormatError(f"{path}: not a file of labels, or damaged ({error})") from error

    def _prepare(self) -> None:
        with self.transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                script = (
                    files("spinal.label.store").joinpath("schema.sql").read_text(encoding="utf-8")
                )
                for statement in _statements(script):
                    db.execute(statement)
            elif version < VERSION:
                for older in range(version, VERSION):
                    for statement in _MIGRATIONS[older]:
                        db.execute(statement)
            elif version > VERSION:
                raise FileFormatError(
                    f"{self.path}: written by another version of spinal "
                    f"(format {version}, this one reads {VERSION})"
                )
            if version != VERSION:
                db.execute(f"PRAGMA user_version = {VERSION}")

    def all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query; None if there is none."""
        with self._lock:
            return self._db.execute(query, values).fetchone()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all changes inside are made, or none. Inside another, it joins that."""
        with self._lock:
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
