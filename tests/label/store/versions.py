"""Label files of older versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def make_version_7(path: Path) -> None:
    """Take away what version 8 added to the file."""
    with closing(sqlite3.connect(path)) as db:
        for index in (
            "images_by_people",
            "images_of_one",
            "answers_that_count",
            "leases_by_client",
            "leases_by_place",
        ):
            db.execute(f"DROP INDEX {index}")
        db.execute("ALTER TABLE images DROP COLUMN people")
        db.execute("PRAGMA user_version = 7")
