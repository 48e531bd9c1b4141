"""Several classes for an image, in the file of labels."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinal.errors import LabelError, SpinalError
from spinal.label.store.catalogue import Search
from spinal.label.store.classes import RemovedClassError
from spinal.label.store.project import Project, open_project, repair_project
from spinal.label.store.sets import from_text, join, split, to_text
from tests.label.sets import CLASSES, give, make_project
from tests.label.store.versions import make_version_7


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project, _ = make_project(tmp_path / "images", 8)
    yield project
    project.close()


def label_of(project: Project, image: int) -> object:
    return project.store.shown(project.store.image(image)["label"])


def test_a_set_has_one_text() -> None:
    assert to_text(["dog", "cat", "dog"]) == to_text(("cat", "dog")) == '["cat", "dog"]'
    assert from_text(to_text([])) == ()
    assert split(join(("cat", "dog"))) == ("cat", "dog")
    assert split(" cat ; ;dog") == ("cat", "dog")


def test_sets_are_kept_and_none_of_these_is_a_label(project: Project) -> None:
    give(project, 1, ("green", "red"))
    give(project, 2, ())
    give(project, 3, None)
    assert [label_of(project, i) for i in (1, 2, 3)] == [("green", "red"), (), None]
    progress = project.store.progress()
    assert progress["labelled"] == 2
    assert progress["classes"] == {"green": 1, "red": 1}
    find = project.store.catalogue.find
    assert find(Search(label="red")).tolist() == [1]
    assert find(Search(state="none")).tolist() == [2]
    assert find(Search(state="skipped")).tolist() == [3]


def test_the_order_of_classes_makes_no_dispute_but_another_set_does(project: Project) -> None:
    give(project, 1, ("green", "red"))
    give(project, 1, ("red", "green"), "bob")
    assert not project.store.image(1)["disputed"]
    token = give(project, 1, ("red",), "eve")
    assert project.store.image(1)["disputed"]
    assert label_of(project, 1) is None
    project.store.undo(token, "eve")
    assert label_of(project, 1) == ("green", "red")
    give(project, 1, (), "eve", reason="disagreement", decides=True)
    assert label_of(project, 1) == ()


def test_labels_of_the_other_kind_are_refused(project: Project, tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="list"):
        give(project, 1, "red")  # type: ignore[arg-type]
    with pytest.raises(LabelError, match="no class 'pink'"):
        give(project, 1, ("red", "pink"))
    single = open_project(project.folder, tmp_path / "single", classes=CLASSES)
    single.scan()
    with pytest.raises(LabelError, match="one class"):
        give(single, 1, ("red",))
    single.close()
    with pytest.raises(SpinalError, match="cannot be changed: leave --multi out"):
        open_project(project.folder, tmp_path / "single", multi=True)
    with pytest.raises(SpinalError, match="cannot be changed: leave --no-multi out"):
        open_project(project.folder, multi=False)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("network", "vgg"), ("method", "random"), ("acquisition", "margin"), ("classes", ("a;b",))],
)
def test_what_a_set_cannot_have_is_refused(tmp_path: Path, setting: str, value: object) -> None:
    with pytest.raises(SpinalError, match=f"{setting}|';'"):
        make_project(tmp_path / "images", 3, **{setting: value})


def test_one_class_is_enough(tmp_path: Path) -> None:
    project, _ = make_project(tmp_path / "images", 3, classes=("red",))
    give(project, 1, ("red",))
    assert project.store.progress()["classes"] == {"red": 1}
    project.close()


def test_classes_change_inside_of_sets_and_back(project: Project) -> None:
    classes = project.store.classes
    given = {1: ("green", "red"), 2: ("blue",), 3: (), 4: ("blue", "green", "red")}
    for image, label in given.items():
        give(project, image, label)
    classes.rename("green", "lime", "ada")
    assert [label_of(project, i) for i in given] == [
        ("lime", "red"), ("blue",), (), ("blue", "lime", "red"),
    ]  # fmt: skip
    give(project, 5, ("green",))  # sent before the change was seen
    assert label_of(project, 5) == ("lime",)
    classes.merge("red", "lime", "ada")
    assert [label_of(project, i) for i in given] == [("lime",), ("blue",), (), ("blue", "lime")]
    classes.remove("blue", "ada")
    assert [label_of(project, i) for i in given] == [("lime",), (), (), ("lime",)]
    with pytest.raises(RemovedClassError):
        give(project, 6, ("blue",))
    for _ in range(3):
        classes.undo()
    assert [label_of(project, i) for i in given] == list(given.values())
    assert classes.names() == CLASSES
    assert project.store.unsaid() == {}  # nothing was answered in between


def test_an_answer_says_nothing_of_a_class_that_came_later(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All in one millisecond: the order is that of answers, not of clocks.
    for module in ("classes", "store"):
        monkeypatch.setattr(f"spinal.label.store.{module}.timestamp", lambda: "2026-01-01T00:00")
    give(project, 1, ("red",))
    give(project, 2, ())
    project.store.classes.add("pink", "ada")
    give(project, 3, ("green",))
    assert project.store.unsaid() == {1: {"pink"}, 2: {"pink"}}
    give(project, 2, ())  # looked at again
    assert project.store.unsaid() == {1: {"pink"}}
    project.store.classes.rename("pink", "rose", "ada")
    assert project.store.unsaid() == {1: {"rose"}}
    project.store.classes.remove("rose", "ada")
    assert project.store.unsaid() == {}
    give(project, 4, ())  # without that class
    project.store.classes.undo()
    assert project.store.unsaid() == {i: {"rose"} for i in (1, 2, 3, 4)}


def test_the_project_knows_and_a_damaged_file_is_repaired(project: Project) -> None:
    folder, home = project.folder, project.home
    give(project, 1, ("green", "red"))
    give(project, 2, ())
    project.store.classes.add("pink", "ada")
    give(project, 3, ("pink",))
    project.close()
    with sqlite3.connect(home / "labels.sqlite") as db:  # a page that was written over
        db.execute("UPDATE answers SET label = 'nonsense' WHERE image = 3")
    db.close()
    repaired = repair_project(home)
    assert (repaired.answers, repaired.lost) == (2, 1)
    again = open_project(folder)
    assert again.settings.multi
    assert [label_of(again, i) for i in (1, 2, 3)] == [("green", "red"), (), None]
    assert again.store.unsaid() == {1: {"pink"}, 2: {"pink"}}
    again.close()


def test_files_of_the_version_before_are_brought_up_to_date(tmp_path: Path) -> None:
    project, _ = make_project(tmp_path / "images", 3)
    give(project, 1, ("red",))
    project.close()
    file = project.home / "labels.sqlite"
    make_version_7(file)
    with sqlite3.connect(file) as db:
        for table, column in (
            ("classes", "since"), ("class_changes", "since"), ("class_changes", "answered"),
            ("moved_answers", "label"),
        ):  # fmt: skip
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 5")
    db.close()
    again = open_project(project.folder)
    again.store.classes.add("pink", "ada")
    assert again.store.unsaid() == {1: {"pink"}}
    again.close()
