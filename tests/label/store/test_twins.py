"""Files with the same content: asked once, in one share, with one label."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from spinal.label.exports.export import labels_of
from spinal.label.store.contents import File, find_copies
from spinal.label.store.project import Project, open_project
from spinal.label.store.repair import repair
from spinal.label.store.store import Answer
from tests.label.files import make_images

CLASSES = ("red", "green", "blue")


def test_copies_are_those_with_the_same_bytes(tmp_path: Path) -> None:
    """Against a comparison of whole contents, with sizes and beginnings that collide."""
    rng = np.random.default_rng(0)
    start = rng.bytes(1 << 15)
    contents = [b"", b"a", b"b", start, start[:-1] + b"x", b"y" + start[1:], start + b"z"]
    by_content: dict[bytes, list[str]] = defaultdict(list)
    for i in range(40):
        content = contents[int(rng.integers(len(contents)))]
        (tmp_path / f"{i:02}.png").write_bytes(content)
        by_content[content].append(f"{i:02}.png")
    os.symlink("/etc/hostname", tmp_path / "outside.png")
    files = [File(tmp_path, name) for name in sorted(os.listdir(tmp_path))]
    groups = [[file.name for file in group] for group in find_copies(files)]
    expected = [names for content, names in by_content.items() if content and len(names) > 1]
    assert sorted(groups) == sorted(expected)
    one = [File(tmp_path, expected[0][1])]
    assert [[f.name for f in group] for group in find_copies(files, one)] == [expected[0]]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Twelve images, and six copies of the first six under names that sort before them."""
    make_images(tmp_path / "images", 12)
    for i in range(6):
        name = f"image-{i:04}.png"
        shutil.copy(tmp_path / "images" / name, tmp_path / "images" / f"copy-{name}")
    project = open_project(tmp_path / "images", classes=CLASSES, encoder="pixels")
    project.scan()
    return project


def twins(project: Project) -> dict[str, str]:
    rows = {row["id"]: row for row in project.store.images()}
    return {r["path"]: rows[r["twin"]]["path"] for r in rows.values() if r["twin"] is not None}


def answer_all(project: Project, person: str = "ada") -> list[str]:
    asked = []
    while questions := project.store.questions.ask("tab", person, 1):
        asked.append(questions[0].path)
        project.store.answer([Answer(f"{person}-{len(asked)}", questions[0].image, "red")], person)
    return asked


def test_copies_are_never_asked_and_have_the_same_label(project: Project) -> None:
    pairs = twins(project)
    assert len(pairs) == 6
    assert all(one.removeprefix("copy-") == two.removeprefix("copy-") for one, two in pairs.items())
    reserved = {row["path"]: row["reserved"] for row in project.store.images()}
    assert all(reserved[one] == reserved[two] for one, two in pairs.items())
    asked = answer_all(project)
    assert len(asked) == len({path.removeprefix("copy-") for path in asked}) == 12
    progress = project.store.progress()
    assert (progress["images"], progress["labelled"], progress["copies"]) == (12, 12, 6)
    assert progress["classes"] == {"red": 12}
    exported = labels_of(project).given
    assert len(exported) == 18
    assert set(exported["label"]) == {"red"}


def test_an_answer_about_a_copy_is_about_its_twin(project: Project) -> None:
    numbers = {row["path"]: row["id"] for row in project.store.images()}
    copy, first = next(iter(twins(project).items()))
    project.store.answer([Answer("t", numbers[copy], "blue")], "ada")
    project.store.answer([Answer("t", numbers[copy], "blue")], "ada")  # sent again
    assert project.store.image(numbers[first])["label"] == "blue"
    assert project.store.image(numbers[copy])["label"] == "blue"
    project.store.undo("t", "ada")
    assert project.store.image(numbers[copy])["label"] is None


def test_copies_that_come_later_join_and_one_that_stays_takes_over(project: Project) -> None:
    for name in ("image-0007.png", "image-0000.png"):
        shutil.copy(project.folder / name, project.folder / f"later-{name}")
    assert project.scan() == 2
    assert project.scan() == 0
    pairs = twins(project)
    assert len(pairs) == 8
    numbers = {row["path"]: row["id"] for row in project.store.images()}
    project.store.answer([Answer("t", numbers["image-0007.png"], "green")], "ada")
    (project.folder / "image-0007.png").unlink()
    project.scan()
    assert twins(project)["image-0007.png"] == "later-image-0007.png"
    assert project.store.image(numbers["later-image-0007.png"])["label"] == "green"
    answers = [(row["path"], row["label"]) for row in project.store.answers()]
    assert answers == [("later-image-0007.png", "green")]


def test_repair_keeps_them_together(project: Project, tmp_path: Path) -> None:
    pairs = twins(project)
    answer_all(project)
    before = [tuple(row) for row in project.store.labelled()]
    project.close()
    repair(project.home / "labels.sqlite", tmp_path / "none", CLASSES)
    again = open_project(project.folder)
    assert twins(again) == pairs
    assert [tuple(row) for row in again.store.labelled()] == before
    again.close()
