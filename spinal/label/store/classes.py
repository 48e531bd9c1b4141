"""The classes of a project, and how they change: added, renamed, merged, removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from spinal.errors import LabelError, SpinalError
from spinal.label.store.database import Database, timestamp

#: Keys of the page that cannot stand for a class: undo, help, search, zoom, brightness, contrast.
RESERVED_KEYS = tuple("u?/+-=0[]{}")
_LEAST = 2


def check_names(names: Sequence[str]) -> None:
    """Raise a SpinalError unless these can be the names of all classes."""
    if len(names) < _LEAST:
        raise SpinalError("give two classes or more, such as --classes cat,dog,none")
    for name in names:
        if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
            raise SpinalError(f"{name!r} cannot be the name of a class")
    if len(set(names)) < len(names):
        raise SpinalError(f"two classes have the same name: {', '.join(names)}")


class RemovedClassError(LabelError):
    """A class that there was, and is no more."""


class Classes:
    """The classes, their keys, and the log of their changes. Every method is atomic.

    An answer follows its class: it is renamed with it, and goes to the class that it is merged
    into. The answers of a class that is removed are set aside: their images have no label and are
    asked again. `undo` takes the last change back, with what happened to the answers.

    Args:
        database: holds them.
        settle: called with the number of each image whose answers were changed.
    """

    def __init__(self, database: Database, settle: Callable[[int], None]) -> None:
        self._database, self._settle = database, settle

    def names(self) -> tuple[str, ...]:
        """The names of all classes, in their order; empty before `begin`."""
        return tuple(r["name"] for r in self._database.all("SELECT * FROM classes ORDER BY place"))

    def keys(self) -> dict[str, str]:
        """The keys that users chose, by class."""
        rows = self._database.all("SELECT name, key FROM classes WHERE key IS NOT NULL")
        return {row["name"]: row["key"] for row in rows}

    def begin(self, names: Sequence[str]) -> None:
        """Set the classes of a new project; no effect if there are some."""
        with self._database.transaction() as db:
            if not self.names():
                db.executemany(
                    "INSERT INTO classes (place, name) VALUES (?, ?)", list(enumerate(names))
                )

    def resolve(self, name: str) -> str:
        """The class that a name stands for now, which may have been renamed or merged.

        Raises:
            RemovedClassError: if it was removed.
            LabelError: if there never was such a class.
        """
        names = self.names()
        newest = None
        while name not in names:
            change = self._database.one(
                "SELECT * FROM class_changes WHERE name = ? AND undone IS NULL AND id > ? "
                "AND kind IN ('rename', 'merge', 'remove') ORDER BY id DESC LIMIT 1",
                name, newest or 0,
            )  # fmt: skip
            if change is None:
                raise LabelError(f"there is no class {name!r}: the classes are {', '.join(names)}")
            if change["kind"] == "remove":
                raise RemovedClassError(f"the class {name!r} was removed")
            name, newest = change["target"], change["id"]
        return name

    # Changes

    def add(self, name: str, person: str) -> None:
        """Add a class, as the last one."""
        with self._database.transaction() as db:
            self._check([*self.names(), name])
            db.execute(
                "INSERT INTO classes (name, place) SELECT ?, coalesce(max(place), 0) + 1 "
                "FROM classes",
                (name,),
            )
            self._note("add", name, person)

    def rename(self, name: str, to: str, person: str) -> None:
        """Rename a class, and its answers with it."""
        with self._database.transaction():
            self._known(name)
            self._check([to if other == name else other for other in self.names()])
            if to != name:
                self._rename(name, to)
                self._note("rename", name, person, to)

    def merge(self, name: str, into: str, person: str) -> None:
        """Give all answers of a class to another one, and remove it."""
        with self._database.transaction() as db:
            self._known(name)
            self._known(into)
            if name == into:
                raise LabelError(f"{name!r} cannot be merged into itself")
            self._check([other for other in self.names() if other != name])
            answers = db.execute("SELECT id FROM answers WHERE label = ?", (name,)).fetchall()
            change = self._remove("merge", name, person, into, answers)
            db.execute("UPDATE answers SET label = ? WHERE label = ?", (into, name))
            self._settle_all(change)

    def remove(self, name: str, person: str) -> None:
        """Remove a class; its answers are set aside, and their images asked again."""
        with self._database.transaction() as db:
            self._known(name)
            self._check([other for other in self.names() if other != name])
            answers = db.execute(
                "SELECT id FROM answers WHERE label = ? AND undone IS NULL", (name,)
            ).fetchall()
            change = self._remove("remove", name, person, None, answers)
            db.execute(
                "UPDATE answers SET undone = ? WHERE label = ? AND undone IS NULL",
                (timestamp(), name),
            )
            self._settle_all(change)

    def set_key(self, name: str, key: str | None, person: str) -> None:
        """Choose the key of a class; None for one that follows from its name."""
        with self._database.transaction() as db:
            before = self._known(name)["key"]
            if key is not None:
                key = key.lower()
                if len(key) != 1 or not key.isprintable() or key.isspace() or key in RESERVED_KEYS:
                    raise LabelError(f"{key!r} cannot be the key of a class")
                if (owner := {k: n for n, k in self.keys().items()}.get(key, name)) != name:
                    raise LabelError(f"{key!r} is the key of {owner!r}")
            if key != before:
                db.execute("UPDATE classes SET key = ? WHERE name = ?", (key, name))
                self._note("key", name, person, key, key=before)

    # Undo

    def last_change(self) -> sqlite3.Row | None:
        """The last change that was not undone, as ``kind, name, target, person, at``."""
        return self._database.one(
            "SELECT * FROM class_changes WHERE undone IS NULL ORDER BY id DESC LIMIT 1"
        )

    def undo(self) -> sqlite3.Row:
        """Undo the last change, and return it.

        Answers since then stay: those of a class that was renamed are renamed with it, those of
        the class that another was merged into belong to it.

        Raises:
            LabelError: if there is none, or if a class was added that has answers.
        """
        with self._database.transaction() as db:
            change = self.last_change()
            if change is None:
                raise LabelError("there is no change of the classes to undo")
            name, target = change["name"], change["target"]
            if change["kind"] == "add":
                self._check_unused(name)
                db.execute("DELETE FROM classes WHERE name = ?", (name,))
            elif change["kind"] == "rename":
                self._rename(target, name)
            elif change["kind"] == "key":
                db.execute("UPDATE classes SET key = ? WHERE name = ?", (change["key"], name))
            else:
                db.execute(
                    "INSERT INTO classes (name, place, key) VALUES (?, ?, ?)",
                    (name, change["place"], change["key"]),
                )
                self._restore(change)
            db.execute(
                "UPDATE class_changes SET undone = ? WHERE id = ?", (timestamp(), change["id"])
            )
            return change

    # Parts

    def _check(self, names: Sequence[str]) -> None:
        try:
            check_names(names)
        except SpinalError as error:
            few = "two classes or more are needed" if len(names) < _LEAST else str(error)
            raise LabelError(few) from error

    def _known(self, name: str) -> sqlite3.Row:
        row = self._database.one("SELECT * FROM classes WHERE name = ?", name)
        if row is None:
            raise LabelError(
                f"there is no class {name!r}: the classes are {', '.join(self.names())}"
            )
        return row

    def _check_unused(self, name: str) -> None:
        count = self._database.all(
            "SELECT count(*) FROM answers WHERE label = ? AND undone IS NULL", name
        )[0][0]
        if count:
            raise LabelError(
                f"{count} answers are {name!r} by now: to be rid of it, remove or merge it"
            )

    def _rename(self, name: str, to: str) -> None:
        with self._database.transaction() as db:
            db.execute("UPDATE classes SET name = ? WHERE name = ?", (to, name))
            db.execute("UPDATE answers SET label = ? WHERE label = ?", (to, name))
            db.execute("UPDATE images SET label = ? WHERE label = ?", (to, name))

    def _remove(
        self, kind: str, name: str, person: str, target: str | None, answers: list[sqlite3.Row]
    ) -> int:
        """Delete a class, and note which answers that changes; return the number of the change."""
        row = self._known(name)
        with self._database.transaction() as db:
            change = self._note(kind, name, person, target, place=row["place"], key=row["key"])
            db.executemany(
                "INSERT INTO moved_answers (change, answer) VALUES (?, ?)",
                [(change, answer["id"]) for answer in answers],
            )
            db.execute("DELETE FROM classes WHERE name = ?", (name,))
        return change

    def _restore(self, change: sqlite3.Row) -> None:
        """Undo what a merge or a removal did to answers."""
        moved = "id IN (SELECT answer FROM moved_answers WHERE change = ?)"
        with self._database.transaction() as db:
            if change["kind"] == "merge":
                values = (change["name"], change["id"], change["target"])
                db.execute(f"UPDATE answers SET label = ? WHERE {moved} AND label = ?", values)
            else:
                db.execute(f"UPDATE answers SET undone = NULL WHERE {moved}", (change["id"],))
        self._settle_all(change["id"])

    def _note(
        self,
        kind: str,
        name: str,
        person: str,
        target: str | None = None,
        *,
        place: int | None = None,
        key: str | None = None,
    ) -> int:
        with self._database.transaction() as db:
            number = db.execute(
                "INSERT INTO class_changes (at, person, kind, name, target, place, key) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (timestamp(), person, kind, name, target, place, key),
            ).lastrowid
        assert number is not None
        return number

    def _settle_all(self, change: int) -> None:
        rows = self._database.all(
            "SELECT DISTINCT image FROM answers WHERE id IN "
            "(SELECT answer FROM moved_answers WHERE change = ?)",
            change,
        )
        for row in rows:
            self._settle(row["image"])


def describe_change(change: sqlite3.Row) -> str:
    """What a change did, for the user."""
    name, target = change["name"], change["target"]
    return {
        "add": f"added {name}",
        "rename": f"renamed {name} to {target}",
        "merge": f"merged {name} into {target}",
        "remove": f"removed {name}",
        "key": f"gave {name} the key {target.upper()}" if target else f"gave {name} its usual key",
    }[change["kind"]]
