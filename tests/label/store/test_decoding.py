"""Images decoded in processes of their own, and what is kept of them."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spinal.data.images import webp_size
from spinal.encoders import load_encoder
from spinal.errors import DataError
from spinal.label.learning.guarded import guard
from spinal.label.store import previews
from spinal.label.store.decoding import Decoders
from spinal.label.store.pictures import inspect, open_inside
from spinal.label.store.previews import Previews
from tests.label.files import make_images

#: 9990 x 9990 pixels of one colour: two gigabytes in memory.
WEBP_BOMB = bytes.fromhex(
    "524946461c000000574542505650384c100000002f0567c1090750c02860ff0311d1ff00"
)


def packed(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_bomb(side: int) -> bytes:
    """16 bits for each of four channels, all of them zero."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)
    data = zlib.compress(bytes(side * (1 + 8 * side)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


def jpeg_bomb() -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    jpeg = packed(Image.new("L", (64, 64), 128), "JPEG", progressive=True)
    last = jpeg[jpeg.rindex(b"\xff\xda") : -2]
    return jpeg[:-2] + 400 * last + jpeg[-2:]


@pytest.fixture(scope="module")
def decoders() -> Iterator[Decoders]:
    few = Decoders(1, max_memory=400 << 20)
    yield few
    few.close()


@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        (WEBP_BOMB, "too much memory"),
        (png_bomb(6000), "too much memory"),
        (jpeg_bomb(), "JPEG of 40. scans, more than 100"),
        (b"", "not a PNG"),
    ],
    ids=["webp", "png", "jpeg", "empty"],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bombs_are_refused_and_the_next_image_is_decoded(
    decoders: Decoders, bomb: bytes, reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        decoders.to_jpeg(bomb, 240, 80)
    whole = packed(Image.new("RGB", (300, 200), "teal"), "PNG")
    with Image.open(io.BytesIO(decoders.to_jpeg(whole, 240, 80))) as copy:
        assert copy.size == (240, 160)


def test_what_takes_too_long_is_stopped() -> None:
    decoders = Decoders(1, max_seconds=0.01)
    decoders._all[0].command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(DataError, match=r"takes more than 0.01 s"):
        decoders.to_jpeg(packed(Image.new("L", (8, 8)), "PNG"), 4, 80)
    decoders.close()


def test_a_process_that_was_killed_is_replaced(decoders: Decoders) -> None:
    image = packed(Image.new("L", (8, 8)), "PNG")
    first = decoders.to_jpeg(image, 4, 80)
    process = decoders._all[0]._process
    assert process is not None
    process.kill()
    process.wait()
    assert decoders.to_jpeg(image, 4, 80) == first


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_features_are_those_of_decoding_here(decoders: Decoders, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8)
    content = packed(Image.fromarray(pixels), kind)
    encoder = load_encoder("pixels@16", device="cpu")
    apart = guard(encoder, decoders)
    assert np.array_equal(apart.prepare(content), encoder.prepare(content))
    assert (apart.name, apart.fingerprint, apart.width) == (
        encoder.name, encoder.fingerprint, encoder.width,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{}, {"lossless": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}]
)
def test_the_size_of_webp_by_its_first_bytes(options: dict[str, object]) -> None:
    content = packed(Image.new("RGB", (321, 123), "teal"), "WEBP", **options)
    assert webp_size(content[:30]) == (321, 123)
    assert webp_size(content[:29]) is None
    assert webp_size(WEBP_BOMB[:30]) == (9990, 9990)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_images(tmp_path / "images", 2)
    return tmp_path / "images"


def test_copies_are_made_once_and_again_when_the_file_changes(folder: Path, tmp_path: Path) -> None:
    made = Previews(tmp_path / "previews", 1)
    Image.new("RGB", (500, 400), "red").save(folder / "a.png")
    picture = inspect(folder, "a.png")
    assert made.find(picture, 240) is None
    first = made.make(picture, 240)
    made.close()
    again = Previews(tmp_path / "previews", 0)  # cannot decode
    assert again.find(picture, 240) == again.make(picture, 240) == first
    next((tmp_path / "previews" / "240").iterdir()).write_bytes(first[:-9])  # as by a power cut
    assert again.find(picture, 240) is None
    Image.new("RGB", (500, 400), "blue").save(folder / "a.png")
    os.utime(folder / "a.png", ns=(1, 1))
    assert again.find(inspect(folder, "a.png"), 240) is None


def test_a_refusal_is_remembered_until_the_file_changes(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "image-0000.png").read_bytes()
    (folder / "image-0000.png").write_bytes(whole[: len(whole) // 2])
    made = Previews(tmp_path / "previews", 1)
    assert made.problem(folder, "image-0000.png") is None  # by its header
    with pytest.raises(DataError, match="truncated"):
        made.make(inspect(folder, "image-0000.png"), 240)
    made.close()
    again = Previews(tmp_path / "previews", 0)
    assert "truncated" in str(again.problem(folder, "image-0000.png"))
    with pytest.raises(DataError, match="truncated"):
        again.make(inspect(folder, "image-0000.png"), 240)
    (folder / "image-0000.png").write_bytes(whole)
    assert again.problem(folder, "image-0000.png") is None


def test_large_copies_do_not_fill_the_disk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_SHOWN", 10)
    made = Previews(tmp_path / "previews", 1)
    for i in range(15):
        Image.new("L", (8, 8), i).save(folder / f"{i}.png")
        made.make(inspect(folder, f"{i}.png"), previews.SHOWN)
    made.close()
    assert len(list((tmp_path / "previews" / "1600").iterdir())) == 10
    assert made.find(inspect(folder, "14.png"), previews.SHOWN) is not None


def test_a_link_put_in_place_of_a_checked_file_is_not_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of the path and the opening, a folder above becomes a link."""
    (folder / "sub").mkdir()
    (tmp_path / "outside").mkdir()
    for place in (folder / "sub", tmp_path / "outside"):
        Image.new("L", (8, 8)).save(place / "a.png")
    opened = os.open

    def swap(path: Path, flags: int) -> int:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to(tmp_path / "outside")
        number = opened(path, flags)
        (folder / "sub").unlink()
        (folder / "moved").rename(folder / "sub")
        return number

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(DataError, match="leads out"):
        open_inside(folder, "sub/a.png")
