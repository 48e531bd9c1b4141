"""A SQLite file that threads share, and transactions on it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

from spinal.errors import FileFormatError, SpinalError
from spinal.files import replacing

VERSION = 8
#: The tables of a new file.
_SCRIPTS = (
    "schema.sql", "classes.sql", "colours.sql", "notes.sql", "sets.sql", "open_images.sql",
    "people.sql",
)  # fmt: skip
#: For each version, the statements or scripts that turn a file into one of the next version.
_MIGRATIONS = {
    1: (
        "ALTER TABLE images RENAME COLUMN holdout TO reserved",
        "ALTER TABLE rounds RENAME COLUMN tested_on TO audited",
        "ALTER TABLE rounds ADD COLUMN accuracy REAL",
        "UPDATE rounds SET accuracy = 1.0 * correct / audited WHERE audited > 0",
    ),
    2: ("classes.sql",),
    3: (
        "ALTER TABLE images ADD COLUMN twin INTEGER REFERENCES images",
        "CREATE INDEX images_by_twin ON images (twin) WHERE twin IS NOT NULL",
    ),
    4: ("colours.sql", "notes.sql"),
    5: ("sets.sql",),
    6: ("open_images.sql",),
    7: ("people.sql",),
}


class StoreError(SpinalError):
    """The label file cannot be used at the moment. It has all answers that were acknowledged."""


class DamagedStoreError(StoreError, FileFormatError):
    """The label file is damaged."""


class Database:
    """A SQLite file, created if it does not exist, and migrated to the current version.

    Threads may share an object; each process opens its own. A transaction is on disk when it ends:
    neither a killed process nor a power cut undoes it. Every method can raise the first two errors.

    Raises:
        StoreError: if the file cannot be opened or written.
        DamagedStoreError: if the file is not a database of labels, or damaged.
        FileFormatError: if it was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._explaining():
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._file = self._identity()
            self._prepare()

    def _prepare(self) -> None:
        with self.transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            steps: Sequence[str] = _SCRIPTS
            if 0 < version <= VERSION:
                steps = [s for older in range(version, VERSION) for s in _MIGRATIONS[older]]
            elif version > VERSION:
                raise FileFormatError(
                    f"{self.path}: written by another version of spinal "
                    f"(format {version}, this one reads {VERSION})"
                )
            for step in steps:
                for statement in _statements(step):
                    db.execute(statement)
            if version != VERSION:
                db.execute(f"PRAGMA user_version = {VERSION}")

    def all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._lock, self._explaining():
            return self._db.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query; None if there is none."""
        with self._lock, self._explaining():
            return self._db.execute(query, values).fetchone()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all changes inside are made, or none. A nested one joins the outer one."""
        with self._lock, self._explaining():
            if self._db.in_transaction:
                yield self._db
                return
            if self._file != self._identity():
                # Without this, answers would be written to a file that was moved or deleted.
                raise StoreError(
                    f"{self.path} no longer exists: was its folder moved, or its drive removed? "
                    "Put it back, or start again where it is now"
                )
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite rolls back by itself if the disk is full
                    self._db.execute("ROLLBACK")
                raise

    def check(self) -> None:
        """Read the whole file.

        Raises:
            DamagedStoreError: if it is damaged.
        """
        problems = [row[0] for row in self.all("PRAGMA integrity_check(1)")]
        if problems != ["ok"]:
            raise DamagedStoreError(_damaged(self.path, problems[0]))

    def copy(self, path: Path) -> None:
        """Write a copy of the file, atomically."""
        with self._lock, self._explaining(), replacing(path) as partial:
            partial.unlink(missing_ok=True)
            copy = sqlite3.connect(partial)
            try:
                self._db.backup(copy)
            finally:
                copy.close()

    def _identity(self) -> tuple[int, int] | None:
        """Device and inode of the file, which identify it; None if there is no file."""
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_dev, state.st_ino

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn SQLite errors into errors that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            for said, meaning in _MEANINGS.items():
                if said in text:
                    raise StoreError(f"{self.path}: {meaning} ({text})") from error
            raise DamagedStoreError(_damaged(self.path, text)) from error
        except UnicodeDecodeError as error:  # raised by sqlite3 for a text that is not UTF-8
            raise DamagedStoreError(_damaged(self.path, str(error))) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


#: SQLite messages that do not mean a damaged file, with explanations.
_MEANINGS = {
    "disk is full": "the disk is full; make room",
    "readonly": "cannot be written; is the folder read-only?",
    "disk I/O error": "the disk cannot be read or written; is it full, or was it removed?",
    "unable to open": "cannot be opened; does its folder exist, and is it writable?",
    "locked": "another program is using it",
    "closed database": "was closed",
}


def timestamp() -> str:
    """The current time in UTC, as stored."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _damaged(path: Path, why: str) -> str:
    return (
        f"{path}: not a label file, or damaged ({why}); end `spinal label`, and start it again "
        "with --repair to save what can be saved"
    )


def _statements(step: str) -> Iterator[str]:
    """The statement itself, or all statements of a script.

    They run one by one because `executescript` would end the transaction.
    """
    if not step.endswith(".sql"):
        yield step
        return
    script = files("spinal.label.store").joinpath(step).read_text(encoding="utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
