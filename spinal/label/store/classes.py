"""The classes of a project, which can be added, renamed, merged and removed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from spinal.errors import LabelError, SpinalError
from spinal.label.store.colours import PALETTE, is_colour, visible
from spinal.label.store.database import Database, timestamp
from spinal.label.store.sets import SEPARATOR, from_text, to_text

#: Keys that the page uses for something else: undo, help, search, zoom, brightness, contrast, flag,
#: note.
RESERVED_KEYS = tuple("u?/+-=0[]{}.,")
_LEAST = 2
_LAST_ANSWER = "SELECT coalesce(max(id), 0) FROM answers"
#: Answers with one of the labels in a JSON list.
_IN_LIST = "label IN (SELECT value FROM json_each(?))"


def check_names(names: Sequence[str], *, multi: bool = False) -> None:
    """Raise a SpinalError unless these can be the names of all classes.

    Args:
        names: the names.
        multi: whether an image can have several: then one class is enough.
    """
    if multi and not names:
        raise SpinalError("give one class or more, such as --classes cat,dog")
    if multi and any(SEPARATOR in name for name in names):
        raise SpinalError(f"with several classes for an image, no class can have a {SEPARATOR!r}")
    if not multi and len(names) < _LEAST:
        raise SpinalError("give two classes or more, such as --classes cat,dog,none")
    for name in names:
        if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
            raise SpinalError(f"{name!r} cannot be the name of a class")
    if len(set(names)) < len(names):
        raise SpinalError(f"two classes have the same name: {', '.join(names)}")


class RemovedClassError(LabelError):
    """The class was removed."""


class Classes:
    """The classes, their keys, and the log of their changes. Every method is atomic.

    Answers follow their class when it is renamed or merged into another one. The answers of a
    removed class are set aside: their images have no label and are asked again. `undo` reverts the
    last change, and what it did to answers.

    Where an image can have several classes, an answer loses a removed class and keeps the others.
    It says nothing about classes that were added after it; see `late`.

    Args:
        database: holds them.
        settle: called with the number of each image whose answers were changed.
        multi: whether an image can have several classes.
    """

    def __init__(
        self, database: Database, settle: Callable[[int], None], *, multi: bool = False
    ) -> None:
        self._database, self._settle, self._multi = database, settle, multi

    def names(self) -> tuple[str, ...]:
        """The names of all classes, in their order; empty before `begin`."""
        return tuple(r["name"] for r in self._database.all("SELECT * FROM classes ORDER BY place"))

    def keys(self) -> dict[str, str]:
        """The keys that users chose, by class."""
        rows = self._database.all("SELECT name, key FROM classes WHERE key IS NOT NULL")
        return {row["name"]: row["key"] for row in rows}

    def colours(self) -> dict[str, tuple[str, bool]]:
        """For each class, its colour on the page, and whether a user chose it."""
        rows = self._database.all("SELECT * FROM classes")
        return {
            row["name"]: (visible(row["colour"] or PALETTE[row["place"] % len(PALETTE)]),
                          row["colour"] is not None)
            for row in rows
        }  # fmt: skip

    def late(self) -> dict[str, int]:
        """The classes that were added after the first answer, each with the last answer before."""
        rows = self._database.all("SELECT name, since FROM classes WHERE since > 0")
        return {row["name"]: row["since"] for row in rows}

    def begin(self, names: Sequence[str]) -> None:
        """Set the classes of a new project; no effect if it has classes."""
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
                "INSERT INTO classes (name, place, since) SELECT ?, coalesce(max(place), 0) + 1, "
                f"({_LAST_ANSWER}) FROM classes",
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
        """Move all answers of a class to another one, and remove it."""
        with self._database.transaction():
            self._known(name)
            self._known(into)
            if name == into:
                raise LabelError(f"{name!r} cannot be merged into itself")
            self._check([other for other in self.names() if other != name])
            self._settle_all(self._remove("merge", name, person, into))

    def remove(self, name: str, person: str) -> None:
        """Remove a class; its answers are set aside, and their images asked again."""
        with self._database.transaction():
            self._known(name)
            self._check([other for other in self.names() if other != name])
            self._settle_all(self._remove("remove", name, person, None))

    def set_key(self, name: str, key: str | None, person: str) -> None:
        """Choose the key of a class; None for one derived from its name."""
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

    def set_colour(self, name: str, colour: str | None, person: str) -> None:
        """Choose the colour of a class, as ``#rrggbb``; None for the default of its place.

        It is made brighter or darker if needed to be visible on every page; see `visible`.
        """
        with self._database.transaction() as db:
            before = self._known(name)["colour"]
            if colour is not None and not is_colour(colour):
                raise LabelError(f"{colour!r} is not a colour: give one such as #0f8a80")
            colour = colour and colour.lower()
            if colour != before:
                db.execute("UPDATE classes SET colour = ? WHERE name = ?", (colour, name))
                self._note("colour", name, person, colour, colour=before)

    # Undo

    def last_change(self) -> sqlite3.Row | None:
        """The last change that was not undone, as ``kind, name, target, person, at``."""
        return self._database.one(
            "SELECT * FROM class_changes WHERE undone IS NULL ORDER BY id DESC LIMIT 1"
        )

    def undo(self) -> sqlite3.Row:
        """Undo the last change, and return it.

        Answers given since then stay. After a rename they get the old name again; after a merge
        they stay with the class that was merged into.

        Raises:
            LabelError: if there is no change, or if it added a class that has answers.
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
            elif change["kind"] in ("key", "colour"):
                column = change["kind"]
                db.execute(
                    f"UPDATE classes SET {column} = ? WHERE name = ?", (change[column], name)
                )
            else:
                # Answers given in the meantime do not say that the class is absent.
                db.execute(
                    "INSERT INTO classes (name, place, key, colour, since) VALUES (?, ?, ?, ?, "
                    f"CASE WHEN ({_LAST_ANSWER}) > ? THEN ({_LAST_ANSWER}) ELSE ? END)",
                    (name, *(change[c] for c in ("place", "key", "colour", "answered", "since"))),
                )
                self._restore(change)
            db.execute(
                "UPDATE class_changes SET undone = ? WHERE id = ?", (timestamp(), change["id"])
            )
            return change

    # Parts

    def _check(self, names: Sequence[str]) -> None:
        try:
            check_names(names, multi=self._multi)
        except SpinalError as error:
            short = len(names) < _LEAST and not self._multi
            few = "two classes or more are needed" if short else str(error)
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
            f"SELECT count(*) FROM answers WHERE {_IN_LIST} AND undone IS NULL",
            json.dumps(list(self._changed(name, name))),
        )[0][0]
        if count:
            raise LabelError(
                f"{count} answers are {name!r} by now: remove or merge the class instead"
            )

    def _rename(self, name: str, to: str) -> None:
        with self._database.transaction() as db:
            db.execute("UPDATE classes SET name = ? WHERE name = ?", (to, name))
            for old, new in self._changed(name, to).items():
                db.execute("UPDATE answers SET label = ? WHERE label = ?", (new, old))
                db.execute("UPDATE images SET label = ? WHERE label = ?", (new, old))

    def _changed(self, name: str, to: str | None) -> dict[str, str | None]:
        """Labels with a class, and their values after it is replaced; ``to`` None removes it."""
        if not self._multi:
            return {name: to}
        rows = self._database.all(
            "SELECT DISTINCT label FROM answers WHERE label IS NOT NULL "
            "AND EXISTS (SELECT 1 FROM json_each(label) WHERE value = ?)",
            name,
        )
        more = () if to is None else (to,)
        return {
            row["label"]: to_text([*(n for n in from_text(row["label"]) if n != name), *more])
            for row in rows
        }

    def _remove(self, kind: str, name: str, person: str, target: str | None) -> int:
        """Delete a class, and change answers; return the number of the change."""
        row, changed = self._known(name), self._changed(name, target)
        set_aside = target is None and not self._multi
        with self._database.transaction() as db:
            gone = {column: row[column] for column in ("place", "key", "colour", "since")}
            change = self._note(kind, name, person, target, **gone)
            db.execute(
                "INSERT INTO moved_answers (change, answer, label) "
                f"SELECT ?, id, label FROM answers WHERE {_IN_LIST}"
                + (" AND undone IS NULL" if set_aside else ""),
                (change, json.dumps(list(changed))),
            )
            if set_aside:
                db.execute(
                    "UPDATE answers SET undone = ? WHERE label = ? AND undone IS NULL",
                    (timestamp(), name),
                )
            else:
                for old, new in changed.items():
                    db.execute("UPDATE answers SET label = ? WHERE label = ?", (new, old))
            db.execute("DELETE FROM classes WHERE name = ?", (name,))
        return change

    def _restore(self, change: sqlite3.Row) -> None:
        """Undo what a merge or a removal did to answers."""
        moved = "id IN (SELECT answer FROM moved_answers WHERE change = ?)"
        with self._database.transaction() as db:
            if change["kind"] == "remove" and not self._multi:
                db.execute(f"UPDATE answers SET undone = NULL WHERE {moved}", (change["id"],))
            else:
                db.execute(
                    "UPDATE answers SET label = (SELECT coalesce(m.label, ?) FROM moved_answers m "
                    f"WHERE m.change = ? AND m.answer = answers.id) WHERE {moved}",
                    (change["name"], change["id"], change["id"]),
                )
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
        colour: str | None = None,
        since: int = 0,
    ) -> int:
        with self._database.transaction() as db:
            number = db.execute(
                "INSERT INTO class_changes "
                "(at, person, kind, name, target, place, key, colour, since, answered) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ({_LAST_ANSWER}))",
                (timestamp(), person, kind, name, target, place, key, colour, since),
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
    """A description of a change, for the user."""
    name, target = change["name"], change["target"]
    return {
        "add": f"added {name}",
        "rename": f"renamed {name} to {target}",
        "merge": f"merged {name} into {target}",
        "remove": f"removed {name}",
        "colour": f"gave {name} the colour {target}" if target else f"gave {name} its usual colour",
        "key": f"gave {name} the key {target.upper()}" if target else f"gave {name} its usual key",
    }[change["kind"]]
