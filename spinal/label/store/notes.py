"""Notes and flags that people add to images."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from spinal.errors import LabelError
from spinal.label.store.database import Database, timestamp

#: Maximum number of characters of a note.
LONGEST = 500
#: Images with a note, by anybody, that fulfils a condition.
_MARKED = "i.id IN (SELECT image FROM notes WHERE {})"
#: Conditions on images ``i``, by name.
MARKS = {"flagged": _MARKED.format("flagged"), "noted": _MARKED.format("note != ''")}


class Notes:
    """Flags and notes on images, one of each per person and image. Every method is atomic.

    Args:
        database: holds them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(
        self,
        images: Sequence[int],
        person: str,
        *,
        flagged: bool | None = None,
        note: str | None = None,
    ) -> None:
        """Set the flag or the note of a person on images; None leaves it unchanged.

        Images with the same content share their notes.

        Raises:
            LabelError: for an unknown image, or a note that is too long; nothing is changed.
        """
        note = None if note is None else " ".join(note.split())
        if note is not None and len(note) > LONGEST:
            raise LabelError(f"a note has at most {LONGEST} characters")
        with self._database.transaction() as db:
            for image in images:
                db.execute(
                    "INSERT INTO notes (image, person, at, flagged, note) "
                    "VALUES (?, ?, ?, coalesce(?, 0), coalesce(?, '')) "
                    "ON CONFLICT (image, person) DO UPDATE SET at = excluded.at, "
                    "flagged = coalesce(?4, flagged), note = coalesce(?5, note)",
                    (self._asked(image), person, timestamp(), flagged, note),
                )
            db.execute("DELETE FROM notes WHERE NOT flagged AND note = ''")

    def _asked(self, image: int) -> int:
        """The number of an image, or of the image with the same content that is asked."""
        row = None
        if image.bit_length() < 64:  # SQLite has no larger numbers
            row = self._database.one("SELECT coalesce(twin, id) FROM images WHERE id = ?", image)
        if row is None:
            raise LabelError(f"there is no image {image}")
        return row[0]

    def of(self, image: int) -> list[sqlite3.Row]:
        """The notes on an image, oldest first."""
        return self._database.all(
            "SELECT * FROM notes WHERE image = ? ORDER BY at, person", self._asked(image)
        )

    def all(self) -> dict[int, list[sqlite3.Row]]:
        """The notes of all images that have any, by image number; copies are included."""
        rows = self._database.all(
            "SELECT i.id AS number, i.path, i.label, n.* FROM notes n "
            "JOIN images i ON coalesce(i.twin, i.id) = n.image ORDER BY i.path, n.at, n.person"
        )
        notes: dict[int, list[sqlite3.Row]] = {}
        for row in rows:
            notes.setdefault(row["number"], []).append(row)
        return notes


def is_flagged(notes: Sequence[sqlite3.Row]) -> bool:
    """Whether anybody flagged the image."""
    return any(row["flagged"] for row in notes)


def joined(notes: Sequence[sqlite3.Row]) -> str:
    """All notes on an image as one text; with names if several people wrote one."""
    said = [row for row in notes if row["note"]]
    if len(said) == 1:
        return said[0]["note"]
    return "; ".join(f"{row['person']}: {row['note']}" for row in said)
