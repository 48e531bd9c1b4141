"""Labels that are known before: read from anywhere, told once, kept out of the audit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spinal.errors import DataError
from spinal.label.exports.export import export
from spinal.label.known.known import read_known, tell_known
from spinal.label.store.project import Project, open_project
from tests.label.files import make_images
from tests.label.models import make_project


@pytest.fixture
def images(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    folder = tmp_path / "images"
    return folder, make_images(folder, 12)


def test_a_table_names_files_in_any_usual_way(images: tuple[Path, dict[str, str]]) -> None:
    folder, _ = images
    (folder / "more").mkdir()
    shutil.copy(folder / "image-0000.png", folder / "more" / "image-0000.png")
    shutil.copy(folder / "image-0001.png", folder / "more" / "one.png")
    table = folder.parent / "known.csv"
    table.write_text(
        "\ufeffpath,label,note\n"
        "image-0000.png, red,x\n"
        "./image-0001.png,green,\n"
        f"{folder}/image-0002.png,blue,\n"
        "images/image-0003.png,red,\n"
        "one.png,green,\n"
        "more\\image-0000.png,blue,\n"
        "image-0005.png,,not known\n"
        "gone.png,red,\n",
        encoding="utf-8",
    )
    known = read_known(table, folder)
    assert known.labels == {
        "image-0000.png": "red", "image-0001.png": "green", "image-0002.png": "blue",
        "image-0003.png": "red", "more/one.png": "green", "more/image-0000.png": "blue",
    }  # fmt: skip
    assert known.missing == ("gone.png",)
    assert known.classes == ("blue", "green", "red")
    assert "6 labels from" in str(known)
    assert "1 for files that are not here: gone.png" in str(known)
    table.write_text("path,label\nimage-0000.png,red\n./image-0000.png,blue\n")
    with pytest.raises(DataError, match="is both 'red' and 'blue'"):
        read_known(table, folder)
    table.write_text("path,label\nnothing.png,red\n")
    with pytest.raises(DataError, match=r"no label for any image .* names nothing\.png"):
        read_known(table, folder)


def sort_into_classes(folder: Path, truth: dict[str, str], to: Path) -> None:
    for i, (name, label) in enumerate(truth.items()):
        (to / label).mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, to / label / f"renamed-{i}.png")


def test_folders_of_classes_here_and_elsewhere(
    images: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, truth = images
    some = dict(list(truth.items())[:7])
    sort_into_classes(folder, some, tmp_path / "sorted")
    elsewhere = read_known(tmp_path / "sorted", folder)  # recognised by content
    assert elsewhere.labels == some
    assert not elsewhere.missing
    (tmp_path / "sorted" / "red" / "other.png").write_bytes(b"other")
    assert read_known(tmp_path / "sorted", folder).missing == ("red/other.png",)
    own = read_known(tmp_path / "sorted", tmp_path / "sorted")
    assert own.labels["green/renamed-1.png"] == "green"
    assert len(own.labels) == 8
    shutil.move(tmp_path / "sorted", folder / "sorted")
    inside = read_known(folder / "sorted", folder)
    assert inside.labels["sorted/green/renamed-1.png"] == "green"
    shutil.copytree(folder / "sorted" / "red", tmp_path / "both" / "blue")
    shutil.copytree(folder / "sorted" / "red", tmp_path / "both" / "red")
    with pytest.raises(DataError, match="the same image in two classes"):
        read_known(tmp_path / "both", folder)


def test_another_project_and_its_export_for_label_studio(tmp_path: Path) -> None:
    old, _ = make_project(tmp_path / "old", images=12, labelled=5)
    labels = {row["path"]: row["label"] for row in old.store.labelled()}
    new = tmp_path / "new"
    shutil.copytree(tmp_path / "old", new, ignore=shutil.ignore_patterns(".spinal"))
    assert read_known(tmp_path / "old", new).labels == labels
    assert read_known(old.home, new).labels == labels
    export(old, "label-studio", tmp_path / "tasks.json")
    assert read_known(tmp_path / "tasks.json", new).labels == labels
    old.close()


def task(image: str, *choices: Any, **more: Any) -> dict[str, Any]:
    result = [{"type": "choices", "value": {"choices": list(choices)}}]
    return {"data": {"image": image}, "annotations": [{"result": result, **more}]}


def test_exports_of_label_studio(images: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = images
    file = tmp_path / "export.json"
    tasks = [
        task("/data/upload/3/1a2b3c4d-image-0000.png", "red"),
        task("/data/local-files/?d=image-0001.png", "green"),
        task("https://example.org/a/image-0002.png?signature=x", "blue"),
        task("s3://bucket/image-0003.png", "red"),
        task("image-0004.png", "red", was_cancelled=True),
        {"data": {"image": "image-0005.png"}, "annotations": []},
        {"id": 7, "image": "/data/upload/3/1a2b3c4d-image-0006.png", "choice": "blue"},
    ]
    file.write_text(json.dumps(tasks))
    assert read_known(file, folder).labels == {
        "image-0000.png": "red", "image-0001.png": "green", "image-0002.png": "blue",
        "image-0003.png": "red", "image-0006.png": "blue",
    }  # fmt: skip
    file.write_text(json.dumps([task("image-0000.png", "red", "blue")]))
    with pytest.raises(DataError, match="several classes: blue, red"):
        read_known(file, folder)
    for wrong in ("{}", "[1]", "nothing", "[" * 100_000):
        file.write_text(wrong)
        with pytest.raises(DataError, match=r"export\.json"):
            read_known(file, folder)


def test_known_labels_are_told_once_and_not_audited(project: Project, tmp_path: Path) -> None:
    rows = project.store.images()
    reserved = [row["path"] for row in rows if row["reserved"]]
    assert reserved
    table = tmp_path / "known.csv"
    table.write_text("path,label\n" + "".join(f"{row['path']},red\n" for row in rows[:30]))
    known = read_known(table, project.folder)
    assert tell_known(project, known) == 30
    assert tell_known(project, known) == 0
    labelled = project.store.labelled()
    assert {row["label"] for row in labelled} == {"red"}
    assert not any(row["reserved"] for row in labelled)
    assert project.store.people() == {"known.csv": 30}
    assert {row["reason"] for row in project.store.answers()} == {"known"}
    asked = project.store.questions.ask("tab", "ada", 20)
    assert {question.path for question in asked} == {row["path"] for row in rows[30:]}


def test_a_new_project_takes_its_classes_from_known_labels(
    images: tuple[Path, dict[str, str]],
) -> None:
    folder, _ = images
    table = folder.parent / "known.csv"
    table.write_text("path,label\nimage-0000.png,zebra\nimage-0001.png,ant\n")
    known = read_known(table, folder)
    project = open_project(folder, classes=known.classes)
    assert project.settings.classes == ("ant", "zebra")
    project.close()
