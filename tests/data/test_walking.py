"""Files below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.data.walking import walk_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files, hidden ones, and two links: to a folder elsewhere, and from there back."""
    top, elsewhere = tmp_path / "top", tmp_path / "elsewhere"
    for name in ("b.txt", "a/z.txt", "a/.hidden", ".git/x.txt", "__MACOSX/x.txt", "c/d/y.txt"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    elsewhere.mkdir()
    (elsewhere / "far.txt").touch()
    (elsewhere / "back").symlink_to(top)
    (top / "link").symlink_to(elsewhere)
    (top / "c" / "file").symlink_to(top / "b.txt")
    return top


@pytest.mark.parametrize("follow", [False, True])
def test_own_files_first_then_those_of_sub_folders(folder: Path, follow: bool) -> None:
    names = [p.relative_to(folder).as_posix() for p in walk_files(folder, follow_links=follow)]
    far = ["link/far.txt"] if follow else []
    assert names == ["b.txt", "a/z.txt", "c/file", "c/d/y.txt", *far]


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert list(walk_files(gone)) == []
    errors: list[OSError] = []
    assert list(walk_files(gone, on_error=errors.append)) == []
    assert errors[0].filename == str(gone)
