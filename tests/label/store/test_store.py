"""The store: nothing lost, nothing doubled, no image with two people."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spinal.errors import FileFormatError, LabelError
from spinal.label.store.database import DamagedStoreError
from spinal.label.store.questions import AHEAD, LEASE
from spinal.label.store.store import Answer, Store
from tests.label.store.versions import make_version_7

CLASSES = ("cat", "dog")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "labels.sqlite", audit=0.2, seed=1)
    store.classes.begin(CLASSES)
    store.add_images(f"{i:03}.png" for i in range(200))
    return store


def say(store: Store, image: int, label: str | None, token: str, person: str = "ada") -> None:
    store.answer([Answer(token, image, label)], person)


def queue_up(store: Store, n: int) -> list[int]:
    """The model asks for n images that are not reserved for the audit."""
    wanted = [row["id"] for row in store.images() if not row["reserved"]][:n]
    store.questions.hand_over(3, [(image, "uncertain") for image in wanted])
    return wanted


def test_an_answer_sent_twice_is_one(store: Store) -> None:
    say(store, 5, "cat", "t1")
    say(store, 5, "cat", "t1")
    assert [(a["image"], a["label"], a["person"]) for a in store.answers()] == [(5, "cat", "ada")]
    with pytest.raises(LabelError, match="used for another"):
        say(store, 5, "dog", "t1")
    assert store.image(5)["label"] == "cat"


def test_refused_answers_leave_no_trace(store: Store) -> None:
    good = Answer("a", 1, "cat")
    for wrong in (Answer("b", 2, "horse"), Answer("b", 9999, "cat")):
        with pytest.raises(LabelError):
            store.answer([good, wrong], "ada")
    assert store.answers() == []
    assert store.progress()["labelled"] == 0


def test_undo_brings_the_earlier_answer_back(store: Store) -> None:
    say(store, 5, "cat", "t1")
    say(store, 5, "dog", "t2")
    assert store.image(5)["label"] == "dog"
    store.undo("t2", "ada")
    store.undo("t2", "ada")  # sent again
    assert store.image(5)["label"] == "cat"
    last = store.last_answer("ada")
    assert last is not None
    assert last["token"] == "t1"
    with pytest.raises(LabelError, match="no such answer"):
        store.undo("t1", "bob")


def test_disagreement_is_listed_and_decided(store: Store) -> None:
    say(store, 5, "cat", "t1", "ada")
    say(store, 5, "dog", "t2", "bob")
    assert store.image(5)["label"] is None  # not trained on while it is open
    assert [(d["person"], d["label"]) for d in store.disagreements()] == [
        ("ada", "cat"),
        ("bob", "dog"),
    ]
    decision = Answer("t3", 5, "dog", reason="disagreement", decides=True)
    store.answer([decision], "eve")
    assert store.disagreements() == []
    assert store.image(5)["label"] == "dog"
    store.undo("t3", "eve")
    assert store.image(5)["disputed"]


def test_a_skipped_image_is_for_others_only(store: Store) -> None:
    first = store.questions.ask("a", "ada", 1)[0].image
    say(store, first, None, "t1")
    asked = {q.image for q in store.questions.ask("a", "ada", 300)}
    assert len(asked) == 199
    assert first not in asked
    assert [q.image for q in store.questions.ask("b", "bob", 300)] == [first]


def test_what_is_reserved_is_a_fixed_random_share(store: Store) -> None:
    drawn = {row["path"] for row in store.images() if row["reserved"]}
    assert 10 <= len(drawn) <= 50  # 30 expected, standard deviation 5.0
    store.add_images(["later.png"])
    store.add_images(f"{i:03}.png" for i in range(200))
    assert {row["path"] for row in store.images() if row["reserved"]} - {"later.png"} == drawn
    other = Store(store._database.path.with_name("other.sqlite"), audit=0.2, seed=2)
    other.classes.begin(CLASSES)
    other.add_images(f"{i:03}.png" for i in range(200))
    assert {row["path"] for row in other.images() if row["reserved"]} != drawn


def test_questions_follow_the_queue_and_keep_the_share(store: Store) -> None:
    wanted = queue_up(store, 100)
    followed, audited = [], 0
    for i in range(100):
        question = store.questions.ask("a", "ada", 1)[0]
        assert question.reserved == (question.reason == "audit")
        audited += question.reserved
        if not question.reserved:
            followed.append(question.image)
            assert (question.reason, question.round) == ("uncertain", 3)
        say(store, question.image, "cat", f"t{i}")
        assert audited >= int(0.2 * (i + 1))
    assert audited == 20
    assert followed == wanted[:80]
    assert {a["reason"] for a in store.answers()} == {"uncertain", "audit"}
    assert {a["round"] for a in store.answers() if a["reason"] == "uncertain"} == {3}


def test_without_a_queue_the_audit_comes_first_and_then_chance(store: Store) -> None:
    reasons = [q.reason for q in store.questions.ask("a", "ada", 30)]
    assert reasons[:AHEAD] == ["audit"] * AHEAD
    assert set(reasons[AHEAD + 3 :]) == {"random", "audit"}
    everything = store.questions.ask("b", "bob", 1000)
    assert len(everything) == 170
    assert store.questions.ask("c", "eve", 1) == []


def test_leases_by_a_clock_that_is_a_little_ahead_stay(store: Store) -> None:
    first = store.questions.ask("tab", "ada", 1, now=1000.5)
    second = store.questions.ask("other", "bob", 1, now=1000.0)  # of a process that read it earlier
    assert first[0].image != second[0].image


def test_leases_of_a_clock_that_was_set_back_are_void(store: Store) -> None:
    tomorrow = store.questions.ask("a", "ada", 3, now=86_400.0)
    assert [q.image for q in store.questions.ask("b", "bob", 3, now=0.0)] == [
        q.image for q in tomorrow
    ]


def test_the_audit_has_its_share_and_at_least_ten_answers(tmp_path: Path) -> None:
    store = Store(tmp_path / "labels.sqlite", audit=0.05, seed=1)
    store.classes.begin(CLASSES)
    store.add_images(f"{i:04}.png" for i in range(1000))
    queue_up(store, 500)
    audited = []
    for i in range(300):
        question = store.questions.ask("a", "ada", 1)[0]
        say(store, question.image, "cat", f"t{i}")
        audited.append(store.progress()["audited"])
    assert audited[24] == 5  # one of five, until there are ten
    assert audited[49] == audited[199] == 10
    assert audited[299] == 15
    rows = [row for row in store.images() if row["reserved"]]
    first = sorted(rows, key=lambda row: row["draw"])[:15]  # by chance, whatever the model says
    assert {row["id"] for row in first} == {row["id"] for row in rows if row["label"]}


def test_doubted_labels_are_asked_once_more_and_first(store: Store) -> None:
    queue_up(store, 20)
    for image in (50, 51, 52):
        say(store, image, "cat", f"t{image}")
    store.questions.doubt([52, 50])
    asked = store.questions.ask("a", "ada", 3)
    assert [(q.image, q.reason) for q in asked[:2]] == [(52, "again"), (50, "again")]
    assert asked[2].reason != "again"
    say(store, 52, "dog", "later")
    say(store, 50, "cat", "as before")
    assert [store.image(i)["label"] for i in (50, 51, 52)] == ["cat", "cat", "dog"]
    store.questions.doubt([52, 50])  # looked at, and not asked a third time
    assert all(q.reason != "again" for q in store.questions.ask("b", "bob", 5))
    assert store.answered_as("again") == {50, 52}


def test_one_of_ten_images_is_asked_of_two_people(store: Store) -> None:
    queue_up(store, 150)
    for i in range(30):
        question = store.questions.ask("a", "ada", 1)[0]
        assert question.reason != "second"  # she is alone
        say(store, question.image, "cat", f"a{i}")
    seconds = 0
    for i in range(30):
        question = store.questions.ask("b", "bob", 1)[0]
        if question.reason == "second":
            seconds += 1
            assert store.image(question.image)["label"] == "cat"
            assert not question.reserved
        say(store, question.image, "cat", f"b{i}", "bob")
    assert seconds == 6  # of 54 images
    shared = store.shared_answers()
    assert len(shared) == 12
    assert {row["person"] for row in shared} == {"ada", "bob"}


def test_without_an_audit_nothing_is_reserved(tmp_path: Path) -> None:
    store = Store(tmp_path / "labels.sqlite", audit=0, seed=1)
    store.classes.begin(CLASSES)
    store.add_images(f"{i:03}.png" for i in range(100))
    assert not any(row["reserved"] for row in store.images())
    assert {question.reason for question in store.questions.ask("a", "ada", 30)} == {"random"}


#: What differs from the tables of today.
FIRST_VERSION = """
    CREATE TABLE images (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, draw REAL NOT NULL,
        holdout INTEGER NOT NULL, problem TEXT, label TEXT, disputed INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX images_by_draw ON images (holdout, draw);
    CREATE INDEX images_with_label ON images (label, holdout) WHERE label IS NOT NULL;
    CREATE TABLE rounds (
        round INTEGER PRIMARY KEY, at TEXT NOT NULL, trained_on INTEGER NOT NULL,
        tested_on INTEGER NOT NULL, correct INTEGER NOT NULL, low REAL, high REAL,
        seconds REAL NOT NULL
    );
    CREATE TABLE answers (
        id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, image INTEGER NOT NULL,
        person TEXT NOT NULL, at TEXT NOT NULL, label TEXT, round INTEGER NOT NULL,
        reason TEXT NOT NULL, decides INTEGER NOT NULL, undone TEXT
    );
    CREATE TABLE leases (
        image INTEGER PRIMARY KEY, client TEXT NOT NULL, until REAL NOT NULL,
        round INTEGER NOT NULL, reason TEXT NOT NULL, place INTEGER NOT NULL
    );
    INSERT INTO images VALUES (1, 'a.png', 0.1, 1, NULL, 'cat', 0);
    INSERT INTO images VALUES (2, 'b.png', 0.5, 0, NULL, NULL, 0);
    INSERT INTO rounds VALUES (1, '2026-01-01', 20, 4, 3, 0.3, 0.95, 1.5);
    INSERT INTO rounds VALUES (2, '2026-01-01', 30, 0, 0, NULL, NULL, 1.5);
    PRAGMA user_version = 1;
"""


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "labels.sqlite")
    old.executescript(FIRST_VERSION)
    old.close()
    for _ in range(2):
        store = Store(tmp_path / "labels.sqlite")
        assert [row["reserved"] for row in store.labelled()] == [1]
        audits = [(row["audited"], row["accuracy"]) for row in store.rounds()]
        assert audits == [(4, 0.75), (0, None)]
        store.close()
    store = Store(tmp_path / "labels.sqlite")
    store.classes.begin(CLASSES)
    store.add_round(3, 40, 1.0)
    store.add_audit(3, 10, 8, (0.83, 0.5, 0.95))
    assert dict(store.rounds()[-1])["accuracy"] == 0.83


def people(store: Store) -> list[int]:
    return [row["people"] for row in store.images()[:4]]


def test_the_number_of_people_follows_the_answers(store: Store) -> None:
    say(store, 1, "cat", "1", "ada")
    say(store, 1, "dog", "2", "ada")
    say(store, 2, "cat", "3", "ada")
    say(store, 2, "dog", "4", "bob")
    say(store, 3, "cat", "5", "ada")
    say(store, 3, None, "6", "bob")
    store.answer([Answer("7", 4, "cat", "known")], "ada")
    assert people(store) == [1, 2, 1, 0]
    store.undo("4", "bob")
    store.classes.add("bird", "ada")
    store.classes.remove("cat", "ada")
    assert people(store) == [1, 0, 0, 0]
    store.classes.undo()
    assert people(store) == [1, 1, 1, 0]


def test_a_file_without_numbers_of_people_gets_them(tmp_path: Path, store: Store) -> None:
    say(store, 1, "cat", "1", "ada")
    say(store, 1, "cat", "2", "bob")
    say(store, 2, None, "3", "ada")
    store.close()
    path = tmp_path / "labels.sqlite"
    make_version_7(path)
    store = Store(path)
    assert people(store) == [2, 0, 0, 0]


def test_leases_keep_images_apart_until_they_run_out(store: Store) -> None:
    queue_up(store, 50)
    a = store.questions.ask("a", "ada", 5, now=0.0)
    b = store.questions.ask("b", "bob", 5, now=1.0)
    assert not {q.image for q in a} & {q.image for q in b}
    assert store.questions.ask("a", "ada", 5, now=LEASE) == a  # renewed
    c = store.questions.ask("c", "eve", 50, now=LEASE + 2)
    assert {q.image for q in b} <= {q.image for q in c}
    assert not {q.image for q in a} & {q.image for q in c}


def test_an_undone_image_comes_next(store: Store) -> None:
    first = store.questions.ask("a", "ada", 3)[0]
    say(store, first.image, "cat", "t1")
    store.questions.ask_again("a", store.undo("t1", "ada"))
    assert store.questions.ask("a", "ada", 3)[0] == first


def test_images_that_cannot_be_shown_are_not_asked(store: Store) -> None:
    store.set_problems([("000.png", "truncated"), ("001.png", "empty")])
    store.set_problems([("001.png", None)])
    assert [(p["path"], p["problem"]) for p in store.problems()] == [("000.png", "truncated")]
    asked = {q.path for q in store.questions.ask("a", "ada", 300)}
    assert "000.png" not in asked
    assert "001.png" in asked


def test_many_clients_at_once_share_the_pool_without_overlap(store: Store) -> None:
    queue_up(store, 120)
    path = store._database.path
    given: dict[str, list[int]] = {}

    def label(name: str) -> None:
        own = Store(path, audit=0.2, seed=1)  # as another process would
        given[name] = []
        for i in range(25):
            question = own.questions.ask(name, name, 2)[0]
            if question.reason != "second":
                given[name].append(question.image)
            say(own, question.image, "cat", f"{name}-{i}", name)

    people = [threading.Thread(target=label, args=(f"p{i}",)) for i in range(4)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    images = [image for each in given.values() for image in each]
    assert len(images) == len(set(images)) == store.progress()["labelled"]
    assert 85 <= len(images) <= 95  # one of ten images is asked of two


def test_what_was_acknowledged_survives_sigkill(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from spinal.label.store.store import *\n"
        "s = Store(Path(sys.argv[1])); s.add_images(f'{i}.png' for i in range(5000))\n"
        "s.classes.begin(['cat', 'dog'])\n"
        "for i in range(1, 5000):\n"
        "    s.answer([Answer(f't{i}', i, 'cat')], 'ada'); print(i, flush=True)\n"
    )
    path = tmp_path / "labels.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        seen = [int(writer.stdout.readline()) for _ in range(20)]
        os.kill(writer.pid, signal.SIGKILL)
        seen += [int(line) for line in writer.stdout if line.endswith("\n")]
    kept = [answer["image"] for answer in Store(path).answers()]
    assert kept[: len(seen)] == seen
    assert len(kept) - len(seen) <= 1  # one may have been stored and not yet acknowledged
    assert Store(path).progress()["labelled"] == len(kept)


def test_durability_settings(store: Store) -> None:
    assert store._database.all("PRAGMA journal_mode")[0][0] == "wal"
    assert store._database.all("PRAGMA synchronous")[0][0] == 2


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("something else entirely, long enough to be looked at " * 40)
    with pytest.raises(FileFormatError, match="not a label file"):
        Store(tmp_path / "a")
    newer = sqlite3.connect(tmp_path / "b")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(FileFormatError, match="another version"):
        Store(tmp_path / "b")


def test_a_damaged_schema_is_named_as_that(tmp_path: Path, store: Store) -> None:
    """SQLite's message has the statement, and sqlite3 fails to decode it."""
    store.close()
    with sqlite3.connect(tmp_path / "labels.sqlite") as db:
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = CAST(x'4352ff28' AS TEXT) WHERE name = 'leases'")
    with pytest.raises(DamagedStoreError, match="--repair"):
        Store(tmp_path / "labels.sqlite")


def test_questions_stay_quick_in_a_large_pool(tmp_path: Path) -> None:
    store = Store(tmp_path / "labels.sqlite")
    store.classes.begin(CLASSES)
    store.add_images(f"{i}.png" for i in range(100_000))
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    store._database._db.set_progress_handler(count, 1000)
    store.questions.ask("a", "ada", 5)
    assert steps < 100  # a scan of all images takes several hundred
