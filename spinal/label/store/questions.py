"""Assignment of questions: the model's queue, questions of the audit, and leases on images."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from spinal.label.store.database import Database

#: Seconds for which an image stays assigned to a client. Each call from the client renews it.
LEASE = 600.0
#: Questions of the audit that may run ahead of their share while no other question is ready.
AHEAD = 10
#: The audit gets at least `LEAST` answers; until then, every `TURN`-th question is for the audit.
LEAST, TURN = 10, 5
#: Share of the images that a second person is asked about, if several people answer. Imported
#: labels (reason ``known``) do not count.
SECOND = 0.1

#: Why an image is asked: the model is uncertain; it has seen nothing similar; the image represents
#: a group without a label; it is for the audit; the queue was empty; its label is probably wrong;
#: one person has answered, and a second one should.
REASONS = ("uncertain", "new", "coverage", "audit", "random", "again", "second")

#: Images ``i`` that a person, the only parameter, may be asked.
_FREE = """
    i.label IS NULL AND NOT i.disputed AND i.problem IS NULL AND i.twin IS NULL
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.image = i.id)
    AND NOT EXISTS (
        SELECT 1 FROM answers a WHERE a.image = i.id AND a.person = ? AND a.undone IS NULL
    )"""


#: Images in the queue whose label is doubted, unless somebody has answered again.
_DOUBTED = """
    SELECT i.id, q.reason, q.round FROM queue q CROSS JOIN images i ON i.id = q.image
    WHERE q.reason = 'again' AND i.label IS NOT NULL AND i.problem IS NULL
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.image = i.id)
    AND NOT EXISTS (
        SELECT 1 FROM answers a WHERE a.image = i.id AND a.reason = 'again' AND a.undone IS NULL
    )
    ORDER BY q.place LIMIT 1"""

#: A random image that one other person has labelled. Reserved images are left out: a disputed image
#: leaves the audit, which would then be too easy.
_LABELLED_BY_ANOTHER = """
    SELECT i.id, 'second' AS reason, (SELECT coalesce(max(round), 0) FROM rounds) AS round
    FROM images i
    WHERE i.people = 1
    AND i.label IS NOT NULL AND NOT i.reserved AND i.problem IS NULL AND i.twin IS NULL
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.image = i.id)
    AND (
        SELECT count(DISTINCT a.person) = 1 AND NOT max(a.person = ? OR a.reason = 'known')
        FROM answers a WHERE a.image = i.id AND a.undone IS NULL
    )
    ORDER BY i.draw LIMIT 1"""


@dataclass(frozen=True)
class Question:
    """An image to label, the reason, the round that asked, and whether it is for the audit."""

    image: int
    path: str
    reason: str
    round: int
    reserved: bool


class Questions:
    """Assigns questions to clients, so that no two clients show the same image.

    Args:
        database: holds images, answers, queue and leases.
        audit: the share of questions that are for the audit.
    """

    def __init__(self, database: Database, audit: float) -> None:
        self._database, self.audit = database, audit

    def ask(self, client: str, person: str, n: int, *, now: float | None = None) -> list[Question]:
        """Up to ``n`` questions for a client, starting with those that it already holds.

        An image is assigned to one client at a time, not after it has a label, and not to a person
        who has answered or skipped it. Doubted labels are the exception, and come first. If several
        people answer, two of them are asked about a share `SECOND` of the images.
        If the audit has less than its share ``audit`` of the answers, its next image is asked;
        otherwise the first image of the model's queue, or a random one if the queue is empty.
        """
        with self._database.transaction() as db:
            # Read the clock inside the transaction: others may write leases while it waits.
            now = time.time() if now is None else now
            # The second case: the clock was set back by more than a usual correction.
            db.execute("DELETE FROM leases WHERE until < ? OR until > ?", (now, now + 2 * LEASE))
            db.execute("UPDATE leases SET until = ? WHERE client = ?", (now + LEASE, client))
            missing = n - len(self._held(client))
            second = self._seconds_due() if missing > 0 else 0.0
            for _ in range(missing):
                image = self._next(person, second > 0)
                if image is None:
                    break
                second -= image["reason"] == "second"
                last = db.execute("SELECT coalesce(max(place), 0) FROM leases").fetchone()[0]
                self._lease(image["id"], client, now, image["round"], image["reason"], last + 1)
            return [
                Question(r["image"], r["path"], r["reason"], r["round"], bool(r["reserved"]))
                for r in self._held(client)[:n]
            ]

    def ask_again(self, client: str, answer: sqlite3.Row, *, now: float | None = None) -> None:
        """Make an image whose answer was undone the next question of a client."""
        now = time.time() if now is None else now
        with self._database.transaction() as db:
            first = db.execute("SELECT coalesce(min(place), 0) FROM leases").fetchone()[0]
            self._lease(answer["image"], client, now, answer["round"], answer["reason"], first - 1)

    def release(self, image: int) -> None:
        """Withdraw a question, for example if its image cannot be shown."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM leases WHERE image = ?", (image,))

    def hand_over(self, round: int, queue: Sequence[tuple[int, str]]) -> None:
        """Replace the queue by numbers of images, best first, each with the reason for asking."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM queue")
            db.executemany(
                "INSERT INTO queue VALUES (?, ?, ?, ?)",
                [(place, image, reason, round) for place, (image, reason) in enumerate(queue)],
            )

    def doubt(self, images: Sequence[int]) -> None:
        """Ask about these labelled images again, before all others, most doubted first."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM queue WHERE reason = 'again'")
            db.executemany(
                "INSERT INTO queue SELECT ?, ?, 'again', coalesce(max(round), 0) FROM rounds",
                [(place - len(images), image) for place, image in enumerate(images)],
            )

    def waiting(self) -> int:
        """Number of questions in the queue that nobody has answered or skipped."""
        return self._database.all(
            "SELECT count(*) FROM queue q CROSS JOIN images i ON i.id = q.image "
            "WHERE i.problem IS NULL AND NOT EXISTS "
            "(SELECT 1 FROM answers a WHERE a.image = i.id AND a.undone IS NULL)"
        )[0][0]

    def n_clients(self) -> int:
        """Number of clients that hold questions."""
        return self._database.all("SELECT count(DISTINCT client) FROM leases")[0][0]

    def _lease(
        self, image: int, client: str, now: float, round: int, reason: str, place: int
    ) -> None:
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO leases (image, client, until, round, reason, place) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (image) DO NOTHING",
                (image, client, now + LEASE, round, reason, place),
            )

    def _held(self, client: str) -> list[sqlite3.Row]:
        return self._database.all(
            "SELECT l.*, i.path, i.reserved FROM leases l JOIN images i ON i.id = l.image "
            "WHERE l.client = ? ORDER BY l.place",
            client,
        )

    def _next(self, person: str, second_is_due: bool) -> sqlite3.Row | None:
        """The image that this person should be asked next, as ``id, reason, round``."""
        if doubted := self._database.one(_DOUBTED):
            return doubted
        if second_is_due and (second := self._database.one(_LABELLED_BY_ANOTHER, person)):
            return second
        # Count labels with an index, subtract those of copies, which are few, and add the open
        # questions about images without a label.
        asked, audited = self._database.all(
            "SELECT coalesce(sum(n), 0), coalesce(sum(n_reserved), 0) FROM ("
            "SELECT count(*) AS n, sum(reserved) AS n_reserved FROM images "
            "INDEXED BY images_with_label WHERE label IS NOT NULL UNION ALL "
            "SELECT -count(*), -sum(reserved) FROM images INDEXED BY images_by_twin "
            "WHERE twin IS NOT NULL AND label IS NOT NULL UNION ALL "
            "SELECT count(*), sum(reason = 'audit') FROM leases "
            "WHERE reason NOT IN ('again', 'second'))"
        )[0]
        missing = -float("inf")
        if self.audit:
            missing = max(self.audit * (asked + 1), min(LEAST, (asked + 1) / TURN)) - audited
        queued = (
            "SELECT i.id, q.reason, q.round FROM queue q CROSS JOIN images i ON i.id = q.image "
            f"WHERE {_FREE} AND NOT i.reserved ORDER BY q.place LIMIT 1"
        )
        by_chance = (
            "SELECT i.id, '{}' AS reason, (SELECT coalesce(max(round), 0) FROM rounds) AS round "
            f"FROM images i WHERE {_FREE} AND i.reserved = {{}} ORDER BY i.draw LIMIT 1"
        )
        for_audit, others = by_chance.format("audit", 1), by_chance.format("random", 0)
        turns = [queued, others, for_audit]
        if missing > 0:
            turns.insert(0, for_audit)
        elif missing > -AHEAD:  # rather than random ones while the queue is empty
            turns.insert(1, for_audit)
        return next((row for turn in turns if (row := self._database.one(turn, person))), None)

    def _seconds_due(self) -> float:
        """How many more images need answers from two people; 0 if only one person answers."""
        people = self._database.all(
            "SELECT DISTINCT person FROM answers "
            "WHERE undone IS NULL AND label IS NOT NULL AND reason != 'known' LIMIT 2"
        )
        if len(people) < 2:
            return 0.0
        images, shared = self._database.all(
            "SELECT count(*), coalesce(sum(people > 1), 0) FROM images WHERE people > 0"
        )[0]
        leased = self._database.all("SELECT count(*) FROM leases WHERE reason = 'second'")[0][0]
        return SECOND * images - shared - leased
