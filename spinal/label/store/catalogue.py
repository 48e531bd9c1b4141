"""Search among all images of a project: by state, class, person and name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinal.errors import LabelError, suggestion
from spinal.label.store.database import Database
from spinal.label.store.notes import MARKS

_SKIPPED = "i.id IN (SELECT image FROM standing WHERE label IS NULL)"
_STATES = {
    "labelled": "i.label IS NOT NULL",
    "unlabelled": f"i.label IS NULL AND NOT i.disputed AND i.problem IS NULL AND NOT {_SKIPPED}",
    "skipped": f"i.label IS NULL AND NOT i.disputed AND {_SKIPPED}",
    "disputed": "i.disputed",
    "problem": "i.problem IS NOT NULL",
    "none": "i.label = '[]'",
}
_ORDERS = ("name", "recent")


@dataclass(frozen=True)
class Search:
    """Search criteria; an empty text matches everything.

    Attributes:
        state: ``labelled``, ``unlabelled``, ``skipped``, ``disputed`` or ``problem``; where an
            image can have several classes, also ``none``: labelled as none of them.
        label: the class that all answers agree on, or one of several.
        person: somebody who answered.
        name: a part of the path; case is ignored.
        marked: ``flagged``, or ``noted`` for images with a note.
        order: ``name``, or ``recent`` for the most recently answered first.

    Raises:
        LabelError: if there is no such state, mark or order.
    """

    state: str = ""
    label: str = ""
    person: str = ""
    name: str = ""
    marked: str = ""
    order: str = "name"

    def __post_init__(self) -> None:
        if self.state and self.state not in _STATES:
            raise LabelError(f"no state {self.state!r}: {suggestion(self.state, _STATES)}")
        if self.marked and self.marked not in MARKS:
            raise LabelError(f"no mark {self.marked!r}: {suggestion(self.marked, MARKS)}")
        if self.order not in _ORDERS:
            raise LabelError(f"no order {self.order!r}: {suggestion(self.order, _ORDERS)}")


class Catalogue:
    """Searches the images of a project; fast enough for 100,000 of them.

    Args:
        database: holds images and answers.
        multi: whether an image can have several classes.
    """

    def __init__(self, database: Database, *, multi: bool = False) -> None:
        self._database, self._multi = database, multi
        self._by_name: tuple[int, NDArray[np.int64]] = (0, np.empty(0, np.int64))

    def find(self, search: Search) -> NDArray[np.int64]:
        """Numbers of the images that a search finds, in its order."""
        conditions, values = [], []
        if search.state:
            conditions.append(_STATES[search.state])
        if search.marked:
            conditions.append(MARKS[search.marked])
        if search.label:
            inside = "EXISTS (SELECT 1 FROM json_each(i.label) WHERE value = ?)"
            conditions.append(inside if self._multi else "i.label = ?")
            values.append(search.label)
        if search.person:
            conditions.append(
                "i.id IN (SELECT image FROM answers WHERE person = ? AND undone IS NULL)"
            )
            values.append(search.person)
        if search.name:
            conditions.append("i.path LIKE ? ESCAPE '!'")
            values.append(f"%{_escape(search.name)}%")
        images = self._all_by_name()
        if conditions:
            wanted = self._numbers(
                f"SELECT i.id AS number FROM images i WHERE {' AND '.join(conditions)}", *values
            )
            images = images[np.isin(images, wanted)]
        if search.order == "recent":
            last = self._numbers(
                "SELECT image AS number FROM answers WHERE undone IS NULL ORDER BY id"
            )
            last = np.array(list(dict.fromkeys(last[::-1].tolist())), np.int64)
            last = last[np.isin(last, images)]
            images = np.concatenate([last, images[~np.isin(images, last)]])
        return images

    def _all_by_name(self) -> NDArray[np.int64]:
        """Numbers of all images, sorted by path; images are never removed or renamed."""
        newest = self._database.all("SELECT coalesce(max(id), 0) FROM images")[0][0]
        if newest != self._by_name[0]:
            rows = self._database.all("SELECT id FROM images ORDER BY path")
            self._by_name = newest, np.array([row[0] for row in rows], np.int64)
        return self._by_name[1]

    def n_images(self) -> int:
        """Number of all images, copies included."""
        return len(self._all_by_name())

    def _numbers(self, query: str, *values: str) -> NDArray[np.int64]:
        """The single column of a query, fetched as one text, which is faster than many rows."""
        text = self._database.all(f"SELECT json_group_array(number) FROM ({query})", *values)[0][0]
        return np.array(json.loads(text), np.int64)

    def rows(self, numbers: Iterable[int]) -> dict[int, sqlite3.Row]:
        """The rows of images, by number, with columns ``skipped``, ``flagged`` and ``noted``."""
        marks = "".join(f", {condition} AS {name}" for name, condition in MARKS.items())
        rows = self._database.all(
            f"SELECT i.*, {_SKIPPED} AS skipped{marks} FROM images i "
            "WHERE i.id IN (SELECT value FROM json_each(?))",
            json.dumps(list(numbers)),
        )
        return {row["id"]: row for row in rows}

    def reserved(self) -> NDArray[np.int64]:
        """Numbers of the images that are reserved for the audit."""
        return self._numbers("SELECT id AS number FROM images WHERE reserved")

    def answers(self, image: int) -> list[sqlite3.Row]:
        """The answers about an image that count, oldest first."""
        return self._database.all("SELECT * FROM standing WHERE image = ? ORDER BY id", image)


def _escape(text: str) -> str:
    """Escape characters that have a special meaning in LIKE."""
    return "".join(f"!{c}" if c in "!%_" else c for c in text)
