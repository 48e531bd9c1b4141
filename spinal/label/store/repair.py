"""Dated copies of the label file, and the repair of a damaged one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from spinal.label.store.database import Database
from spinal.label.store.sets import from_text, to_text
from spinal.label.store.store import RESERVE, Store, draw_of

#: Number of copies to keep, one for each day on which the project was opened.
COPIES = 7
_NAME = "labels-{}.sqlite"
#: Columns that had another name in files of the first version.
_RENAMED = {"holdout": "reserved", "tested_on": "audited"}

#: The tables that are recovered, and their key columns.
_KEYS = {
    "images": ("id",), "answers": ("token",), "rounds": ("round",), "classes": ("name",),
    "class_changes": ("id",), "moved_answers": ("change", "answer"), "notes": ("image", "person"),
}  # fmt: skip

#: Columns that are derived again, or set after all rows are inserted.
_DERIVED = {"label": None, "disputed": False, "people": 0, "problem": None, "twin": None}

Row = dict[str, Any]


@dataclass(frozen=True)
class Repair:
    """The result of a repair.

    Attributes:
        answers: number of answers in the new file.
        lost: number of answers that were left out, for example because their image was not found.
        old: where the damaged file is now.
    """

    answers: int
    lost: int
    old: Path

    def __str__(self) -> str:
        lost = f", {self.lost} lost" if self.lost else ""
        return f"repaired: {self.answers} answers saved{lost}; the damaged file is {self.old}"


def keep_copy(store: Store, folder: Path) -> None:
    """Replace today's copy, and keep only the newest `COPIES`."""
    folder.mkdir(parents=True, exist_ok=True)
    store.copy(folder / _NAME.format(datetime.now().strftime("%Y-%m-%d")))
    for old in copies_in(folder)[:-COPIES]:
        old.unlink(missing_ok=True)


def copies_in(folder: Path) -> list[Path]:
    """The copies, oldest first."""
    return sorted(folder.glob(_NAME.format("*")))


def repair(
    path: Path,
    copies: Path,
    classes: Sequence[str],
    *,
    audit: float = 0.05,
    seed: int = 0,
    multi: bool = False,
) -> Repair:
    """Make a new label file from what can be read of the old one and of its copies.

    The damaged file is kept under another name. Labels follow from the answers.

    Args:
        path: the label file.
        copies: the folder of copies.
        classes: used if those in the file cannot be read. Other classes of answers are added.
        audit: see `Store`; used for images of which only the path can be read.
        seed: see ``audit``.
        multi: see `Store`.
    """
    tables: dict[str, dict[Any, Row]] = {table: {} for table in _KEYS}
    for source in (*copies_in(copies), path):  # newer rows replace older ones
        for table, key in _KEYS.items():
            rows = list(_readable_rows(source, table))
            if table == "classes" and rows:
                tables[table] = {}  # classes of an older copy may have been renamed or removed
            tables[table] |= {tuple(row[name] for name in key): row for row in rows}
        for row in _readable_paths(source):
            draw = draw_of(seed, row["path"])
            reserved = bool(audit) and draw < RESERVE
            tables["images"].setdefault((row["id"],), {**row, "draw": draw, "reserved": reserved})
    fresh = path.with_name(path.name + ".repaired")
    for name in _files(fresh):
        name.unlink(missing_ok=True)
    saved, lost = _fill(fresh, tables, classes, multi)
    old = path.with_name(f"labels-damaged-{datetime.now():%Y-%m-%d-%H%M%S}.sqlite")
    for from_, to in zip(_files(path), _files(old), strict=True):
        with suppress(FileNotFoundError):
            os.replace(from_, to)
    os.replace(fresh, path)
    return Repair(saved, lost, old)


def _fill(
    path: Path, tables: dict[str, dict[Any, Row]], classes: Sequence[str], multi: bool
) -> tuple[int, int]:
    """Make a label file from rows; return the numbers of answers stored and left out.

    Rows that violate constraints are left out.
    """
    with closing(Database(path)) as database, database.transaction() as db:
        for row in tables["images"].values():
            _insert(db, "images", {**row, **_DERIVED})
        for row in tables["images"].values():  # after all rows that they refer to
            with suppress(sqlite3.IntegrityError, sqlite3.InterfaceError):
                db.execute("UPDATE images SET twin = ? WHERE id = ?", (row.get("twin"), row["id"]))
        answers = sorted(tables["answers"].values(), key=lambda row: row["id"])
        stored = [
            (not multi or _is_set(row["label"])) and _insert(db, "answers", row) for row in answers
        ]
        for table in ("rounds", "classes", "class_changes", "moved_answers", "notes"):
            for row in tables[table].values():
                _insert(db, table, row)
    with closing(Store(path, multi=multi)) as store:
        store.classes.begin(classes)
        for image in {row["image"] for row in store.answers()}:
            store.settle(image)
        labels = {row["label"] for row in store.answers() if row["undone"] is None} - {None}
        named = labels
        if multi:
            named = {name for label in labels for name in from_text(label)}
        for label in sorted(named - {*store.classes.names()}):
            store.classes.add(label, "spinal label --repair")
    return sum(stored), len(stored) - sum(stored)


def _is_set(label: Any) -> bool:
    """Whether the label of an answer is valid where an image can have several classes."""
    try:
        return label is None or to_text(from_text(label)) == label
    except (TypeError, ValueError):
        return False


def _insert(db: sqlite3.Connection, table: str, row: Row) -> bool:
    """Insert a row if the table can take it."""
    known = {column[1] for column in db.execute(f"PRAGMA table_info({table})")}
    row = {_RENAMED.get(name, name): value for name, value in row.items()}
    columns = [name for name in row if name in known]
    places = ", ".join("?" * len(columns))
    try:
        db.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})",
            [row[name] for name in columns],
        )
    except (sqlite3.IntegrityError, sqlite3.InterfaceError):
        return False
    return True


def _files(path: Path) -> list[Path]:
    """A SQLite file and its ``-wal`` and ``-shm`` files."""
    return [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]


def _readable_paths(path: Path) -> Iterator[Row]:
    """Numbers and paths of images, from the index of paths, which is stored in separate pages."""
    query = "SELECT id, path FROM images INDEXED BY sqlite_autoindex_images_1 ORDER BY path"
    if path.exists():
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
            for number, name in db.execute(query):
                if isinstance(number, int) and isinstance(name, str):
                    yield {"id": number, "path": name}


def _readable_rows(path: Path, table: str) -> Iterator[Row]:
    """The readable rows of a table: from its start to the damage, then from its end backwards."""
    if not path.exists():
        return
    seen: set[int] = set()
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
            db.row_factory = sqlite3.Row
            db.text_factory = lambda text: text.decode("utf-8", "replace")
            for row in db.execute(f"SELECT rowid AS number, * FROM {table} ORDER BY 1 {order}"):
                if row["number"] in seen:
                    break
                seen.add(row["number"])
                yield {key: row[key] for key in row.keys() if key != "number"}  # noqa: SIM118
