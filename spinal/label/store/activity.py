"""How many answers each person gave, and how long they took."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from spinal.label.store.database import Database
from spinal.label.store.questions import REASONS

#: A longer time between two answers, in seconds, counts as a break.
BREAK = 60.0
#: Reasons of answers that correct other answers.
CORRECTIONS = ("mistake", "disagreement", "browse", "again")


class Activity:
    """What each person answered, and how fast.

    Args:
        database: holds the answers.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def people(self) -> list[dict[str, Any]]:
        """For each person, numbers of answers, and the median time for one.

        Returns:
            ``person``, ``answers`` that were not undone, and of these ``skipped`` and
            ``corrections``; ``undone``, ``last`` (time of the last answer), ``seconds`` (None if
            unknown). The person with most answers comes first.
        """
        rows = self._database.all(
            "SELECT person, sum(undone IS NULL) AS answers, "
            "sum(undone IS NULL AND label IS NULL) AS skipped, "
            "sum(undone IS NULL AND reason IN (SELECT value FROM json_each(?))) AS corrections, "
            "count(undone) AS undone, max(at) AS last "
            "FROM answers GROUP BY person ORDER BY answers DESC, person",
            json.dumps(CORRECTIONS),
        )
        times = self.seconds()
        return [
            {
                **dict(row),
                "seconds": median(times[row["person"]]) if row["person"] in times else None,
            }
            for row in rows
        ]

    def opinions(self) -> list[tuple[int, str, str]]:
        """The last label that each person gave an image, as image, person, label.

        Answers that settle a dispute are left out.
        """
        rows = self._database.all(
            "SELECT image, person, label FROM answers AS a "
            "WHERE undone IS NULL AND NOT decides AND label IS NOT NULL AND NOT EXISTS ("
            "SELECT 1 FROM answers AS b WHERE b.image = a.image AND b.person = a.person "
            "AND b.id > a.id AND b.undone IS NULL AND NOT b.decides) ORDER BY image, id"
        )
        return [(row["image"], row["person"], row["label"]) for row in rows]

    def seconds(self) -> dict[str, list[float]]:
        """Seconds from one answer of a person to the next, up to `BREAK`.

        Only answers to single questions count: others can cover many images at once.
        """
        rows = self._database.all(
            "SELECT person, seconds FROM ("
            "SELECT person, reason, 86400 * (julianday(at) - julianday("
            "lag(at) OVER (PARTITION BY person ORDER BY id))) AS seconds FROM answers) "
            "WHERE seconds > 0 AND seconds <= ? AND reason IN (SELECT value FROM json_each(?))",
            BREAK,
            json.dumps(REASONS),
        )
        times: dict[str, list[float]] = {}
        for row in rows:
            times.setdefault(row["person"], []).append(row["seconds"])
        return times
