"""Files with the same content: one of them is asked, the others share its label."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from spinal.label.store.database import Database


class Twins:
    """Groups of images with the same content.

    The first of a group that can be shown represents all: only it is asked, used for training and
    counted, so that no image is both in the audit and in the rest. All answers about the group are
    answers about it. The others have its number in the column ``twin``, and its label.

    Args:
        database: holds the images.
        settle: called with the number of each image whose answers were changed.
    """

    def __init__(self, database: Database, settle: Callable[[int], None]) -> None:
        self._database, self._settle = database, settle

    def join(self, groups: Iterable[Sequence[str]]) -> None:
        """Record which images, given as groups of paths, have the same content."""
        with self._database.transaction():
            for paths in groups:
                rows = self._database.all(
                    "SELECT id, twin FROM images WHERE path IN (SELECT value FROM json_each(?))",
                    json.dumps(list(paths)),
                )
                self._group({row["twin"] or row["id"] for row in rows})

    def choose_again(self) -> None:
        """Choose another image for each group whose image can no longer be shown."""
        with self._database.transaction():
            rows = self._database.all(
                "SELECT DISTINCT t.twin FROM images t JOIN images i ON i.id = t.twin "
                "WHERE i.problem IS NOT NULL AND t.problem IS NULL"
            )
            for row in rows:
                self._group({row["twin"]})

    def _group(self, numbers: set[int]) -> None:
        """Make a group of these images and those that they represent."""
        with self._database.transaction() as db:
            members = [
                row["id"]
                for row in self._database.all(
                    "SELECT id FROM images WHERE id IN (SELECT value FROM json_each(?1)) "
                    "OR twin IN (SELECT value FROM json_each(?1)) ORDER BY problem IS NOT NULL, id",
                    json.dumps(sorted(numbers)),
                )
            ]
            first, others = members[0], json.dumps(members[1:])
            inside = "IN (SELECT value FROM json_each(?))"
            db.execute(f"DELETE FROM leases WHERE image {inside}", (others,))
            db.execute(f"DELETE FROM queue WHERE image {inside}", (others,))
            db.execute(f"UPDATE answers SET image = ? WHERE image {inside}", (first, others))
            db.execute(
                "UPDATE images SET twin = ?, disputed = 0, people = 0, "
                f"reserved = (SELECT reserved FROM images WHERE id = ?) WHERE id {inside}",
                (first, first, others),
            )
            db.execute("UPDATE images SET twin = NULL WHERE id = ?", (first,))
            self._settle(first)
