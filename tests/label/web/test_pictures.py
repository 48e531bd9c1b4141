"""What a browser gets of an image file."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from spinal.errors import DataError
from spinal.label.store.pictures import inspect
from spinal.label.web.pictures import show, shrink
from tests.label.files import make_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_images(tmp_path, 2)
    return tmp_path


def test_small_files_are_shown_as_they_are_and_large_ones_scaled(folder: Path) -> None:
    small = inspect(folder, "image-0000.png")
    assert show(small) == ((folder / "image-0000.png").read_bytes(), "image/png")
    Image.new("RGB", (3000, 2000), "teal").save(folder / "large.jpg")
    content, kind = show(inspect(folder, "large.jpg"))
    assert kind == "image/jpeg"
    (folder / "copy.jpg").write_bytes(content)
    copy = inspect(folder, "copy.jpg")
    assert (copy.width, copy.height) == (1600, 1067)


def test_a_truncated_image_is_an_error_of_ours(folder: Path) -> None:
    whole = (folder / "image-0000.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="truncated"):
        shrink(inspect(folder, "cut.png"), 16)
