"""Classes that change: what happens to their answers, and that it can be undone."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from spinal.errors import LabelError
from spinal.label.store.classes import RemovedClassError, describe_change
from spinal.label.store.store import Answer, Store
from tests.label.store.versions import make_version_7

CLASSES = ("cat", "kitten", "dog", "none")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "labels.sqlite", audit=0.2, seed=1)
    store.classes.begin(CLASSES)
    store.add_images(f"{i:03}.png" for i in range(20))
    return store


def say(store: Store, image: int, label: str, person: str = "ada") -> None:
    store.answer([Answer(f"{image}-{label}-{person}", image, label)], person)


def labels(store: Store) -> dict[int, str]:
    return {row["id"]: row["label"] for row in store.labelled()}


def test_a_class_is_renamed_with_its_answers(store: Store) -> None:
    say(store, 1, "cat")
    store.classes.set_key("cat", "X", "ada")
    store.classes.rename("cat", "feline", "ada")
    assert store.classes.names() == ("feline", "kitten", "dog", "none")
    assert store.classes.keys() == {"feline": "x"}
    say(store, 2, "feline")
    assert labels(store) == {1: "feline", 2: "feline"}
    store.classes.undo()
    assert store.classes.names() == CLASSES
    assert labels(store) == {1: "cat", 2: "cat"}


def test_a_merge_moves_answers_and_ends_disputes_and_undo_brings_both_back(store: Store) -> None:
    say(store, 1, "cat")
    say(store, 2, "kitten")
    say(store, 3, "cat", "ada")
    say(store, 3, "kitten", "bob")
    assert store.image(3)["disputed"]
    store.classes.merge("kitten", "cat", "ada")
    assert store.classes.names() == ("cat", "dog", "none")
    assert labels(store) == {1: "cat", 2: "cat", 3: "cat"}
    assert not store.image(3)["disputed"]
    say(store, 4, "cat")
    store.classes.undo()
    assert store.classes.names() == CLASSES
    assert labels(store) == {1: "cat", 2: "kitten", 4: "cat"}
    assert store.image(3)["disputed"]


def test_answers_of_a_removed_class_are_asked_again_until_it_comes_back(store: Store) -> None:
    for image in (1, 2):
        say(store, image, "none")
    say(store, 1, "dog", "bob")
    store.classes.remove("none", "ada")
    assert labels(store) == {1: "dog"}  # what bob said remains
    asked = {question.image for question in store.questions.ask("tab", "ada", 20)}
    assert 2 in asked
    with pytest.raises(RemovedClassError):
        say(store, 5, "none")
    store.classes.undo()
    assert store.classes.names() == CLASSES
    assert labels(store) == {2: "none"}
    assert store.image(1)["disputed"]


def test_an_answer_that_was_on_its_way_goes_to_the_class_of_now(store: Store) -> None:
    store.classes.rename("kitten", "young cat", "ada")
    store.classes.merge("young cat", "cat", "ada")
    say(store, 1, "kitten")
    say(store, 1, "kitten")  # sent again
    assert labels(store) == {1: "cat"}
    store.classes.add("kitten", "ada")
    say(store, 2, "kitten")
    assert labels(store) == {1: "cat", 2: "kitten"}


def test_an_added_class_is_taken_back_only_without_answers(store: Store) -> None:
    store.classes.add("bird", "ada")
    say(store, 1, "bird")
    with pytest.raises(LabelError, match="1 answers are 'bird'"):
        store.classes.undo()
    store.undo("1-bird-ada", "ada")
    change = store.classes.undo()
    assert describe_change(change) == "added bird"
    assert store.classes.names() == CLASSES
    with pytest.raises(LabelError, match="no change"):
        store.classes.undo()


def test_what_cannot_be_is_refused(store: Store) -> None:
    classes = store.classes
    classes.set_key("cat", "x", "ada")
    refused = [
        lambda: classes.add("cat", "ada"),
        lambda: classes.add(" ", "ada"),
        lambda: classes.rename("horse", "cow", "ada"),
        lambda: classes.rename("cat", "dog", "ada"),
        lambda: classes.merge("cat", "cat", "ada"),
        lambda: classes.merge("cat", "horse", "ada"),
        lambda: classes.remove("horse", "ada"),
        lambda: classes.set_key("dog", "x", "ada"),
        lambda: classes.set_key("dog", "u", "ada"),
        lambda: classes.set_key("dog", "xy", "ada"),
        lambda: classes.set_key("dog", " ", "ada"),
    ]
    for change in refused:
        with pytest.raises(LabelError):
            change()
    classes.remove("none", "ada")
    classes.remove("dog", "ada")
    with pytest.raises(LabelError, match="two classes or more"):
        classes.remove("cat", "ada")
    assert classes.names() == ("cat", "kitten")


def test_any_changes_are_undone_one_by_one(store: Store) -> None:
    """After each change, undoing it leads back to the labels before it."""
    rng = random.Random(0)
    for image in range(1, 21):
        for person in ("ada", "bob"):
            say(store, image, rng.choice(CLASSES), person)
    before = []
    for step in range(40):
        names = store.classes.names()
        before.append((names, labels(store), store.classes.keys()))
        name, other = rng.sample(names, 2)
        kind = rng.choice(["add", "rename", "merge", "remove", "key"])
        if kind == "add" or len(names) == 2:
            store.classes.add(f"class {step}", "ada")
        elif kind == "rename":
            store.classes.rename(name, f"class {step}", "ada")
        elif kind == "merge":
            store.classes.merge(name, other, "ada")
        elif kind == "remove":
            store.classes.remove(name, "ada")
        else:
            store.classes.set_key(name, chr(0x3B1 + step), "ada")
    for state in reversed(before):
        store.classes.undo()
        assert (store.classes.names(), labels(store), store.classes.keys()) == state


def test_a_file_of_the_version_before_gets_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    store = Store(path)
    store.add_images(["a.png"])
    store.close()
    make_version_7(path)
    with sqlite3.connect(path) as db:
        for table in ("moved_answers", "class_changes", "classes", "notes"):
            db.execute(f"DROP TABLE {table}")
        db.execute("DROP INDEX images_by_twin")
        db.execute("DROP INDEX images_open")
        db.execute("ALTER TABLE images DROP COLUMN twin")
        db.execute("PRAGMA user_version = 2")
    store = Store(path)
    store.classes.begin(CLASSES)
    say(store, 1, "cat")
    assert labels(store) == {1: "cat"}
