"""Projects: found again, added to, moved, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from spinal.data import images
from spinal.errors import DataError, FileFormatError, SpinalError
from spinal.label.store.finding import find_images, find_unreadable
from spinal.label.store.pictures import inspect
from spinal.label.store.project import open_project
from spinal.label.store.settings import ProjectSettings, read_settings
from tests.label.files import make_images, png_that_claims


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_images(tmp_path / "images", 6)
    return tmp_path / "images"


def test_a_project_goes_on_where_it_was(folder: Path) -> None:
    with pytest.raises(SpinalError, match="to create one"):
        open_project(folder)
    first = open_project(folder, classes=("cat", "dog"), budget=50, seed=7)
    assert first.scan() == 6
    assert open_project(folder).settings == first.settings
    assert open_project(folder / ".spinal").settings == first.settings
    assert open_project(folder).scan() == 0
    assert open_project(folder, budget=80).settings.budget == 80
    assert open_project(folder).settings.budget == 80
    with pytest.raises(SpinalError, match="seed 7"):
        open_project(folder, seed=8)


def test_a_project_that_kept_a_share_for_testing_is_audited_now(folder: Path) -> None:
    project = open_project(folder, classes=("cat", "dog"))
    file = project.home / "project.json"
    values = json.loads(file.read_text())
    del values["audit"]
    file.write_text(json.dumps(values | {"holdout": 0.15}))
    assert open_project(folder).settings == project.settings
    assert project.settings.audit == 0.05


def test_classes_are_added_by_the_command_and_never_taken_away(folder: Path) -> None:
    open_project(folder, classes=("cat", "dog"))
    more = open_project(folder, classes=("dog", "none", "cat"))
    assert more.settings.classes == ("cat", "dog", "none")  # keys stay where they are
    more.store.classes.rename("cat", "feline", "ada")
    again = open_project(folder, classes=("cat", "dog"))  # the same command as at the beginning
    assert again.settings.classes == ("feline", "dog", "none")
    assert read_settings(again.home / "project.json")[1] == again.settings
    more.store.classes.remove("dog", "ada")
    with pytest.raises(SpinalError, match=r"'dog' was removed: .* --add dog"):
        open_project(folder, classes=("cat", "dog"))


@pytest.mark.parametrize("classes", [("cat",), ("cat", "cat"), ("cat", ""), ("cat", "a\nb")])
def test_wrong_classes_are_refused_and_nothing_is_made(
    folder: Path, classes: tuple[str, ...]
) -> None:
    with pytest.raises(SpinalError):
        open_project(folder, classes=classes)
    assert not (folder / ".spinal").exists()


def test_a_new_method_brings_its_own_acquisition_function(folder: Path) -> None:
    project = open_project(folder, classes=("cat", "dog"), method="mc-dropout", acquisition="bald")
    assert (project.settings.method, project.settings.acquisition) == ("mc-dropout", "bald")
    assert open_project(folder, budget=5).settings.acquisition == "bald"
    assert open_project(folder, method="logistic").settings.acquisition is None


def test_folder_and_project_move_together(folder: Path, tmp_path: Path) -> None:
    open_project(folder, classes=("cat", "dog")).close()
    moved = tmp_path / "elsewhere"
    shutil.move(folder, moved)
    assert open_project(moved).folder == moved


def test_a_project_elsewhere(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "project"
    open_project(folder, home, classes=("cat", "dog"))
    assert not (folder / ".spinal").exists()
    assert open_project(home).folder == folder
    (tmp_path / "other").mkdir()
    with pytest.raises(SpinalError, match="is the project of"):
        open_project(tmp_path / "other", home)


def test_damaged_settings_are_named(folder: Path) -> None:
    open_project(folder, classes=("cat", "dog")).close()
    (folder / ".spinal" / "project.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"project\.json"):
        open_project(folder)


def test_new_files_join_and_missing_ones_leave(folder: Path) -> None:
    project = open_project(folder, classes=("cat", "dog"))
    project.scan()
    (folder / "sub").mkdir()
    Image.new("RGB", (8, 8)).save(folder / "sub" / "new.jpg")
    (folder / "image-0000.png").rename(folder / "hidden")
    assert project.scan() == 1
    assert [(p["path"], p["problem"]) for p in project.store.problems()] == [
        ("image-0000.png", "no such file")
    ]
    (folder / "hidden").rename(folder / "image-0000.png")
    assert project.scan() == 1  # it can be shown again
    assert project.store.problems() == []


def test_only_images_that_are_not_hidden(folder: Path) -> None:
    for name in (".hidden.png", "notes.txt", "photo.JPG", "line\nbreak.png"):
        (folder / name).write_bytes(b"")
    (folder / ".git").mkdir()
    (folder / ".git" / "a.png").write_bytes(b"")
    found = list(find_images(folder))
    assert [name for name in found if not name.startswith("image-")] == ["photo.JPG"]


def test_many_classes_do_not_put_off_the_first_model() -> None:
    answers = [ProjectSettings(tuple(map(str, range(n)))).first_answers for n in (2, 10, 60)]
    assert answers == [10, 30, 40]


def test_images_that_are_left_out_are_named(folder: Path) -> None:
    for name in ("photo.HEIC", "line\nbreak.png", "notes.txt", *(f"{i}.svg" for i in range(12))):
        (folder / name).write_bytes(b"")
    lines = find_unreadable(folder)
    assert lines[0] == "'line\\nbreak.png': rename it"
    assert lines[1].startswith("0.svg: convert it (.png, ")
    assert lines[-1].startswith("and 3 more: convert it")
    assert len(lines) == 12


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "sub/../../secret.png"])
def test_names_that_lead_out_are_refused(folder: Path, name: str) -> None:
    Image.new("RGB", (8, 8)).save(folder.parent / "secret.png")
    with pytest.raises(DataError, match="leads out"):
        inspect(folder, name)


def test_links_that_lead_out_are_refused_and_listed(folder: Path) -> None:
    Image.new("RGB", (8, 8)).save(folder.parent / "secret.png")
    (folder / "link.png").symlink_to("../secret.png")
    (folder / "inside.png").symlink_to("image-0000.png")
    (folder / "way-out").symlink_to(folder.parent)
    project = open_project(folder, classes=("cat", "dog"))
    project.scan()
    project.check(sorted(project.store.paths()))
    assert [(p["path"], p["problem"]) for p in project.store.problems()] == [
        ("link.png", "leads out of the folder")
    ]
    with pytest.raises(DataError, match="leads out"):
        project.path("way-out/secret.png")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a PNG, JPEG, WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not a PNG"),
        (b"8BPS" + b"\0" * 100, "not a PNG"),
        (png_that_claims(50_000, 50_000), "decompression bomb"),
        (png_that_claims(11_000, 10_000), "more than 100,000,000"),
        (png_that_claims(9_000, 9_000), "too many for its"),
    ],
    ids=["empty", "svg", "psd", "bomb", "too-large", "lying"],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_is_no_image_or_lies_about_its_size_is_refused_undecoded(
    folder: Path, content: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
    (folder / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        inspect(folder, "a.png")


def test_files_too_large_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 100)
    with pytest.raises(DataError, match="more than 100"):
        inspect(folder, "image-0000.png")


def test_no_image_libraries_of_the_worker_are_loaded_by_the_page() -> None:
    code = (
        "import sys, spinal.label.store.project\n"
        "print([name for name in ('torch', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
