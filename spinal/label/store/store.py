"""Images, answers and rounds of a project. An answer is on disk when the call returns."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spinal.errors import LabelError
from spinal.label.store.activity import Activity
from spinal.label.store.catalogue import Catalogue
from spinal.label.store.classes import Classes
from spinal.label.store.database import Database, timestamp
from spinal.label.store.notes import Notes
from spinal.label.store.questions import Questions
from spinal.label.store.sets import Label, from_text, to_text
from spinal.label.store.twins import Twins

#: Share of the images that are reserved for the audit: more than it asks, because the estimate also
#: uses the mean confidence on all of them.
RESERVE = 0.15


@dataclass(frozen=True)
class Answer:
    """A person's answer about an image.

    Attributes:
        token: unique identifier, chosen by the sender; sending an answer twice has no effect.
        image: number of the image.
        label: the name of a class; where an image can have several, a tuple of all its classes,
            which may be empty; None to skip.
        reason: the view of the page where it was given, unless it answers a question.
        decides: whether it settles a dispute and overrules earlier answers of others.
    """

    token: str
    image: int
    label: Label | None
    reason: str = "unasked"
    decides: bool = False


class Store:
    """The labels of a project. Every method is atomic.

    Args:
        path: the SQLite file; created if it does not exist.
        audit: share of the answers that are for the audit; 0 for no audit.
        seed: for the choice of the images that are reserved for the audit.
        multi: whether an image can have several classes. Labels are then stored as texts of sets;
            see `spinal.label.store.sets` and `shown`.

    Attributes:
        classes: the classes and their changes.
        twins: images with the same content.
        questions: the assignment of questions.
        catalogue: search among all images.
        activity: numbers and times of answers per person.
        notes: notes and flags on images.
    """

    def __init__(
        self, path: Path, *, audit: float = 0.05, seed: int = 0, multi: bool = False
    ) -> None:
        self._database = Database(path)
        self.seed, self.multi = seed, multi
        self._reserve = RESERVE if audit else 0.0
        self.classes = Classes(self._database, self.settle, multi=multi)
        self.twins = Twins(self._database, self.settle)
        self.questions = Questions(self._database, audit)
        self.catalogue = Catalogue(self._database, multi=multi)
        self.activity = Activity(self._database)
        self.notes = Notes(self._database)

    def check(self) -> None:
        """Read the whole file; DamagedStoreError if it is damaged."""
        self._database.check()

    def copy(self, path: Path) -> None:
        """Write a copy of the file."""
        self._database.copy(path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes inside are stored together, or none of them."""
        with self._database.transaction():
            yield

    # Images

    def add_images(self, paths: Iterable[str], copies: Iterable[Sequence[str]] = ()) -> int:
        """Add new files to the pool, and return how many were new. Known files stay unchanged.

        The seed and the path determine here whether an image is reserved for the audit. The
        reserved images are a random sample of all files, independent of later questions.

        Args:
            paths: the files.
            copies: groups of files with the same content; see `Twins`.
        """
        rows = [(path, draw := draw_of(self.seed, path), draw < self._reserve) for path in paths]
        with self._database.transaction() as db:
            before = db.total_changes
            db.executemany(
                "INSERT INTO images (path, draw, reserved) VALUES (?, ?, ?) "
                "ON CONFLICT (path) DO NOTHING",
                rows,
            )
            added = db.total_changes - before
            self.twins.join(copies)
            return added

    def set_problems(self, problems: Iterable[tuple[str, str | None]]) -> None:
        """Record for each path why the image cannot be shown; None if it can."""
        with self._database.transaction() as db:
            db.executemany(
                "UPDATE images SET problem = ?2 WHERE path = ?1 AND problem IS NOT ?2", problems
            )

    def image(self, number: int) -> sqlite3.Row:
        """The row of an image.

        Raises:
            LabelError: if there is no such image.
        """
        row = None
        if number.bit_length() < 64:  # SQLite has no larger numbers
            row = self._database.one("SELECT * FROM images WHERE id = ?", number)
        if row is None:
            raise LabelError(f"there is no image {number}")
        return row

    def images(self) -> list[sqlite3.Row]:
        """All images by number, with an extra column: whether anybody ``skipped`` it."""
        return self._database.all(
            "SELECT *, id IN (SELECT image FROM standing WHERE label IS NULL) AS skipped "
            "FROM images ORDER BY id"
        )

    def paths(self) -> set[str]:
        """All paths that were ever in the pool."""
        return {row["path"] for row in self._database.all("SELECT path FROM images")}

    def problems(self) -> list[sqlite3.Row]:
        """Images that cannot be shown, as ``id, path, problem``."""
        return self._database.all(
            "SELECT id, path, problem FROM images WHERE problem IS NOT NULL ORDER BY path"
        )

    def labelled(self) -> list[sqlite3.Row]:
        """Images with a label that all agree on, by path: ``id, path, label, reserved, twin``."""
        return self._database.all(
            "SELECT id, path, label, reserved, twin FROM images WHERE label IS NOT NULL "
            "ORDER BY path"
        )

    def unanswered(self, numbers: Sequence[int]) -> dict[int, str]:
        """The paths of those images that can be shown and have no answer.

        Images that are reserved for the audit are excluded.
        """
        rows = self._database.all(
            "SELECT id, path FROM images WHERE id IN (SELECT value FROM json_each(?)) "
            "AND problem IS NULL AND twin IS NULL AND NOT reserved AND NOT EXISTS "
            "(SELECT 1 FROM answers a WHERE a.image = images.id AND a.undone IS NULL)",
            json.dumps(list(numbers)),
        )
        return {row["id"]: row["path"] for row in rows}

    def release_from_audit(self, numbers: Sequence[int]) -> None:
        """Remove images from the audit, because their labels were not requested at random."""
        with self._database.transaction() as db:
            db.executemany("UPDATE images SET reserved = 0 WHERE id = ?", [(n,) for n in numbers])

    # Answers

    def answer(self, answers: Sequence[Answer], person: str) -> list[sqlite3.Row]:
        """Record answers, all or none; return their rows.

        Raises:
            LabelError: for an unknown image or class, or a token that was used for another answer.
        """
        with self._database.transaction():
            answers = [self._of_now(answer) for answer in answers]
            for answer in answers:
                self._record(answer, person)
            return [self._stored(answer, person) for answer in answers]

    def _of_now(self, answer: Answer) -> Answer:
        """The answer with its label as stored, and the image that represents its copies."""
        label = None if answer.label is None else self._text_of(answer.label)
        return replace(answer, label=label, image=self.image(answer.image)["twin"] or answer.image)

    def _text_of(self, label: Label) -> str:
        """The stored text of a label, with the current names of its classes."""
        if isinstance(label, str) and not self.multi:
            return self.classes.resolve(label)
        if isinstance(label, str):
            raise LabelError("an image has several classes here: give a list of them")
        if not self.multi:
            raise LabelError("an image has one class here: give its name")
        return to_text(self.classes.resolve(name) for name in label)

    def shown(self, label: str | None) -> Label | None:
        """A stored label as users see it: a class or a tuple of classes; None stays None."""
        return from_text(label) if self.multi and label is not None else label

    def unsaid(self) -> dict[int, set[str]]:
        """For labelled images, the classes that their answers say nothing about, if any.

        Where an image can have several classes, these are the classes added after the answer.
        """
        late = self.classes.late() if self.multi else {}
        if not late:
            return {}
        rows = self._database.all(
            "SELECT image, max(id) AS last, label FROM standing WHERE label IS NOT NULL "
            "GROUP BY image"
        )
        unsaid = {
            row["image"]: {
                name for name, since in late.items()
                if row["last"] <= since and name not in from_text(row["label"])
            }
            for row in rows
        }  # fmt: skip
        return {image: names for image, names in unsaid.items() if names}

    def _record(self, answer: Answer, person: str) -> None:
        asked = None
        if answer.reason == "unasked":
            asked = self._database.one(
                "SELECT round, reason FROM leases WHERE image = ?", answer.image
            )
        round, reason = asked or (self.last_round(), answer.reason)
        with self._database.transaction() as db:
            new = db.execute(
                "INSERT INTO answers (token, image, person, at, label, round, reason, decides) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (token) DO NOTHING",
                (
                    answer.token, answer.image, person, timestamp(), answer.label, round, reason,
                    answer.decides,
                ),
            ).rowcount  # fmt: skip
            if new:
                self.questions.release(answer.image)
                self.settle(answer.image)

    def _stored(self, answer: Answer, person: str) -> sqlite3.Row:
        row = self._database.one("SELECT * FROM answers WHERE token = ?", answer.token)
        assert row is not None
        if (row["image"], row["label"], row["person"]) != (answer.image, answer.label, person):
            raise LabelError(f"the token {answer.token!r} was used for another answer")
        return row

    def undo(self, token: str, person: str) -> sqlite3.Row:
        """Undo an answer, and return its row. Undoing it twice has no effect.

        Raises:
            LabelError: if this person gave no such answer.
        """
        with self._database.transaction() as db:
            db.execute(
                "UPDATE answers SET undone = ? WHERE token = ? AND person = ? AND undone IS NULL",
                (timestamp(), token, person),
            )
            row = self._database.one(
                "SELECT * FROM answers WHERE token = ? AND person = ?", token, person
            )
            if row is None:
                raise LabelError("there is no such answer to undo")
            self.settle(row["image"])
            return row

    def settle(self, image: int) -> None:
        """Update the label, the dispute flag and the number of people of an image."""
        said = self._database.all(
            "SELECT DISTINCT label FROM standing WHERE image = ? AND label IS NOT NULL", image
        )
        agreed = said[0]["label"] if len(said) == 1 else None
        with self._database.transaction() as db:
            db.execute(
                "UPDATE images SET label = ?2, disputed = ?3, people = ("
                "SELECT count(DISTINCT person) FROM answers WHERE image = ?1 AND undone IS NULL "
                "AND label IS NOT NULL AND reason != 'known') WHERE id = ?1",
                (image, agreed, len(said) > 1),
            )
            db.execute("UPDATE images SET label = ? WHERE twin = ?", (agreed, image))

    def last_answer(self, person: str) -> sqlite3.Row | None:
        """The last answer of this person that was not undone."""
        return self._database.one(
            "SELECT * FROM answers WHERE person = ? AND undone IS NULL ORDER BY id DESC LIMIT 1",
            person,
        )

    def answers(self) -> list[sqlite3.Row]:
        """All answers, including undone ones, with the ``path`` of each image."""
        return self._database.all(
            "SELECT a.*, i.path FROM answers a JOIN images i ON i.id = a.image ORDER BY a.id"
        )

    def answered_as(self, reason: str) -> set[int]:
        """Images that have an answer with this reason that was not undone."""
        rows = self._database.all(
            "SELECT DISTINCT image FROM answers WHERE reason = ? AND undone IS NULL", reason
        )
        return {row["image"] for row in rows}

    def disagreements(self) -> list[sqlite3.Row]:
        """Answers about disputed images, as ``image, path, person, label, at``."""
        return self._database.all(
            "SELECT s.image, i.path, s.person, s.label, s.at "
            "FROM images i JOIN standing s ON s.image = i.id "
            "WHERE i.disputed AND s.label IS NOT NULL ORDER BY s.image, s.id"
        )

    def shared_answers(self) -> list[sqlite3.Row]:
        """Answers about images that several people labelled, as ``image, person, label``."""
        return self._database.all(
            "SELECT image, person, label FROM standing WHERE label IS NOT NULL AND image IN ("
            "SELECT image FROM standing WHERE label IS NOT NULL "
            "GROUP BY image HAVING count(DISTINCT person) > 1) ORDER BY image, id"
        )

    # Rounds and counts

    def add_round(self, round: int, trained_on: int, seconds: float) -> None:
        """Record a fit, with the number of labels and the time it took."""
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO rounds (round, at, trained_on, audited, correct, seconds) "
                "VALUES (?, ?, ?, 0, 0, ?)",
                (round, timestamp(), trained_on, seconds),
            )

    def add_audit(
        self, round: int, audited: int, correct: int, accuracy: tuple[float, float, float]
    ) -> None:
        """Record the audit of a fit: numbers of answers, and the accuracy with its interval."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE rounds SET audited = ?, correct = ?, accuracy = ?, low = ?, high = ? "
                "WHERE round = ?",
                (audited, correct, *accuracy, round),
            )

    def rounds(self) -> list[sqlite3.Row]:
        """The results of all fits, oldest first."""
        return self._database.all("SELECT * FROM rounds ORDER BY round")

    def last_round(self) -> int:
        """The number of the newest fit; 0 before there is one."""
        return self._database.all("SELECT coalesce(max(round), 0) FROM rounds")[0][0]

    def last_change(self) -> tuple[int, int]:
        """Numbers that change whenever an answer is added or undone."""
        total, undone = self._database.all("SELECT count(*), count(undone) FROM answers")[0]
        return total, undone

    def progress(self) -> dict[str, Any]:
        """Numbers of images, in total, labelled, and by class."""
        counts = self._database.one(
            "SELECT (SELECT count(*) FROM images WHERE twin IS NOT NULL) AS copies, "
            "(SELECT count(*) FROM images WHERE problem IS NOT NULL) AS problems, "
            "(SELECT count(*) FROM images WHERE disputed) AS disputed"
        )
        assert counts is not None
        # Count all labels, with an index, and subtract those of copies, which are few.
        by_class: Counter[str] = Counter()
        labelled = audited = 0
        for row in self._database.all(
            "SELECT label, reserved, count(*) AS n FROM images WHERE label IS NOT NULL "
            "GROUP BY label, reserved UNION ALL "
            "SELECT label, reserved, -count(*) FROM images INDEXED BY images_by_twin "
            "WHERE twin IS NOT NULL AND label IS NOT NULL GROUP BY label, reserved"
        ):
            for name in json.loads(row["label"]) if self.multi else (row["label"],):
                by_class[name] += row["n"]
            labelled += row["n"]
            audited += row["n"] if row["reserved"] else 0
        return {
            **dict(counts),
            "images": self.catalogue.n_images() - counts["copies"],
            "labelled": labelled,
            "audited": audited,
            "classes": {label: n for label, n in sorted(by_class.items()) if n},
        }

    def people(self) -> dict[str, int]:
        """Number of answers of each person that were not undone."""
        rows = self._database.all(
            "SELECT person, count(*) AS n FROM answers WHERE undone IS NULL GROUP BY person"
        )
        return {row["person"]: row["n"] for row in rows}


def draw_of(seed: int, path: str) -> float:
    """A number in [0, 1), uniform over seeds and paths."""
    digest = hashlib.blake2b(f"{seed}:{path}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
