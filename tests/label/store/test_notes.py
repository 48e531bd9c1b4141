"""Notes and flags: kept by person, found again, and saved from a damaged file."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.errors import LabelError
from spinal.label.store.catalogue import Search
from spinal.label.store.notes import is_flagged, joined
from spinal.label.store.repair import repair
from spinal.label.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "labels.sqlite")
    store.add_images([f"{i}.png" for i in range(6)], [["4.png", "5.png"]])
    return store


def number(store: Store, name: str) -> int:
    return next(row["id"] for row in store.images() if row["path"] == name)


def test_each_person_has_a_flag_and_a_note(store: Store) -> None:
    image = number(store, "0.png")
    store.notes.set([image], "ada", flagged=True)
    store.notes.set([image], "ada", note="  out of\n focus ")
    store.notes.set([image], "bob", note="a cat?")
    said = [(row["person"], row["flagged"], row["note"]) for row in store.notes.of(image)]
    assert said == [("ada", 1, "out of focus"), ("bob", 0, "a cat?")]
    assert is_flagged(store.notes.of(image))
    assert joined(store.notes.of(image)) == "ada: out of focus; bob: a cat?"
    store.notes.set([image], "bob", note="")
    assert joined(store.notes.of(image)) == "out of focus"
    store.notes.set([image], "ada", flagged=False)
    assert [row["note"] for row in store.notes.of(image)] == ["out of focus"]
    store.notes.set([image], "ada", note="")
    assert store.notes.of(image) == []


def test_all_images_or_none(store: Store) -> None:
    with pytest.raises(LabelError, match="no image 99"):
        store.notes.set([1, 99], "ada", flagged=True)
    with pytest.raises(LabelError, match="no image"):
        store.notes.set([2**70], "ada", flagged=True)
    with pytest.raises(LabelError, match="500 characters"):
        store.notes.set([1], "ada", note="x" * 501)
    assert store.notes.all() == {}


def test_a_search_finds_flags_and_notes(store: Store) -> None:
    one, two, three = (number(store, f"{i}.png") for i in range(3))
    store.notes.set([one, two], "ada", flagged=True)
    store.notes.set([two, three], "bob", note="odd")
    assert store.catalogue.find(Search(marked="flagged")).tolist() == [one, two]
    assert store.catalogue.find(Search(marked="noted")).tolist() == [two, three]
    assert store.catalogue.find(Search(marked="noted", name="2")).tolist() == [three]
    rows = store.catalogue.rows([one, two, three])
    assert [(rows[i]["flagged"], rows[i]["noted"]) for i in (one, two, three)] == [
        (1, 0), (1, 1), (0, 1)
    ]  # fmt: skip
    with pytest.raises(LabelError, match="no mark 'flaged'"):
        Search(marked="flaged")


def test_a_copy_has_the_notes_of_the_image_that_is_asked(store: Store) -> None:
    asked, copy = number(store, "4.png"), number(store, "5.png")
    store.notes.set([copy], "ada", note="twice")
    assert joined(store.notes.of(asked)) == joined(store.notes.of(copy)) == "twice"
    assert set(store.notes.all()) == {asked, copy}


def test_notes_are_saved_from_a_damaged_file(store: Store, tmp_path: Path) -> None:
    store.classes.begin(("cat", "dog"))
    store.notes.set([1, 2], "ada", flagged=True, note="keep me")
    store.classes.set_colour("dog", "#112233", "ada")
    store.close()
    repair(tmp_path / "labels.sqlite", tmp_path / "copies", ("cat", "dog"))
    repaired = Store(tmp_path / "labels.sqlite")
    assert [joined(repaired.notes.of(i)) for i in (1, 2, 3)] == ["keep me", "keep me", ""]
    assert repaired.classes.colours()["dog"][1]
