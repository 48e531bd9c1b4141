"""Known labels where an image can have several classes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spinal.errors import DataError
from spinal.label.known.known import read_known, tell_known
from spinal.label.store.project import open_project
from tests.label.sets import CLASSES, give, make_colours, make_project

EXPECTED = {"image-0000.png": {"cat", "dog"}, "image-0001.png": {"cat"}}


def read(source: Path, folder: Path) -> dict[str, set[str]]:
    return {
        name: set(label) for name, label in read_known(source, folder, multi=True).labels.items()
    }


@pytest.mark.parametrize(
    ("table", "more"),
    [
        ("path,label\nimage-0000.png,cat;dog\nimage-0001.png, cat \nimage-0002.png,\n", {}),
        ("path,label\nimage-0000.png,cat\nimage-0001.png,cat\nimage-0000.png,dog\n", {}),
        ("image,choice\nimage-0000.png,cat;dog\nimage-0001.png,cat\n", {}),
        (
            "path,cat,dog,size\nimage-0000.png,1,1,7\nimage-0001.png,1,0,8\nimage-0002.png,0,0,9\n",
            {"image-0002.png": set()},
        ),
        (
            "path,label,y(cat),y(dog)\nimage-0000.png,x,1,1\nimage-0001.png,x,1,\n"
            "image-0002.png,,0,0\nimage-0003.png,x,,\n",
            {"image-0002.png": set()},
        ),
    ],
)
def test_tables(tmp_path: Path, table: str, more: dict) -> None:
    make_colours(tmp_path / "images", 4)
    (tmp_path / "labels.csv").write_text(table)
    assert read(tmp_path / "labels.csv", tmp_path / "images") == EXPECTED | more


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("name,label\na,cat\n", "no column path"),
        ("path,size\nimage-0000.png,7\n", "no columns of 0 and 1"),
        ("path,y(cat)\nimage-0000.png,7\n", "0 and 1 are expected"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path: Path, table: str, message: str) -> None:
    make_colours(tmp_path / "images", 1)
    (tmp_path / "labels.csv").write_text(table)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "labels.csv", tmp_path / "images")


def test_an_image_in_several_folders_has_the_classes_of_all(tmp_path: Path) -> None:
    make_colours(tmp_path / "images", 3)
    for name, label in (("0000", "cat"), ("0000", "dog"), ("0001", "cat")):
        target = tmp_path / "folders" / label / f"{name}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "images" / f"image-{name}.png", target)
    assert read(tmp_path / "folders", tmp_path / "images") == EXPECTED


def test_label_studio_with_several_choices(tmp_path: Path) -> None:
    make_colours(tmp_path / "images", 3)

    def task(name: str, *people: list[str]) -> dict:
        annotations = [
            {"result": [{"value": {"choices": said}}] if said else []} for said in people
        ]
        return {"data": {"image": name}, "annotations": annotations}

    tasks = [
        task("image-0000.png", ["dog", "cat"], ["cat", "dog"]),
        task("image-0001.png", ["cat"]),
        task("image-0002.png", []),
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    expected = {**EXPECTED, "image-0002.png": set()}
    assert read(tmp_path / "tasks.json", tmp_path / "images") == expected
    tasks.append(task("image-0001.png", ["cat"], ["dog"]))
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(DataError, match="different classes"):
        read(tmp_path / "tasks.json", tmp_path / "images")
    small = [{"image": "image-0000.png", "choice": {"choices": ["cat", "dog"]}}]
    (tmp_path / "tasks.json").write_text(json.dumps(small))
    assert read(tmp_path / "tasks.json", tmp_path / "images") == {"image-0000.png": {"cat", "dog"}}


def test_from_one_project_to_another(tmp_path: Path) -> None:
    project, _ = make_project(tmp_path / "images", 4)
    give(project, 1, ("red", "green"))
    give(project, 2, ())
    known = read_known(project.home, project.folder, multi=True)  # its own labels, by path
    assert {n: set(label) for n, label in known.labels.items()} == {
        "image-0000.png": {"red", "green"}, "image-0001.png": set(),
    }  # fmt: skip
    with pytest.raises(DataError, match="--multi"):
        read_known(project.home, project.folder)
    other = open_project(project.folder, tmp_path / "other", classes=CLASSES, multi=True)
    other.scan()
    assert tell_known(other, known) == 2
    assert tell_known(other, known) == 0  # the same labels once more
    assert other.store.progress()["labelled"] == 2
    for each in (project, other):
        each.close()
