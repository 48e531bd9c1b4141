"""Image files that strangers may have made: looked at from outside first, then shown."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from spinal.data.images import (
    FORMATS,
    MAX_PIXELS,
    check_claim,
    check_pixels,
    describe,
    flatten_mode,
    upright,
)
from spinal.errors import DataError

MAX_BYTES = 1 << 29
#: Up to here a file goes to the browser as it is; beyond, scaled down to `SHOWN` pixels.
PLAIN_BYTES, PLAIN_PIXELS = 1 << 20, 4_000_000
SHOWN = 1600
_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


@dataclass(frozen=True)
class Picture:
    """A file that may be decoded: where it really is, its format, its size."""

    path: Path
    format: str
    width: int
    height: int
    bytes: int


def locate(folder: Path, name: str) -> Path:
    """The real path of a file of a folder, all links followed.

    Raises:
        DataError: if it is not there, or not inside the folder.
    """
    real = Path(os.path.realpath(folder / name))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise DataError("leads out of the folder")
    if not real.is_file():
        raise DataError("no such file")
    return real


def inspect(folder: Path, name: str) -> Picture:
    """Look at the first bytes of a file of a folder; nothing is decoded.

    Raises:
        DataError: if it is not an image, too large, or claims more pixels than it can hold.
    """
    path = locate(folder, name)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise DataError(f"{size:,} bytes, more than {MAX_BYTES:,}")
        with Image.open(path, formats=FORMATS) as image:
            check_pixels(image, MAX_PIXELS)
            check_claim(image, size)
            return Picture(path, str(image.format), image.width, image.height, size)
    except DataError:
        raise
    except Exception as error:  # a damaged header can fail in any way
        raise DataError(describe(error, path)) from error


def problem(folder: Path, name: str) -> str | None:
    """Why a file of a folder cannot be shown; None if it can, as far as its header tells."""
    try:
        inspect(folder, name)
    except DataError as error:
        return str(error)
    return None


def show(picture: Picture) -> tuple[bytes, str]:
    """What a browser gets to see, and its media type: the file, or a smaller copy of it.

    Raises:
        DataError: if it cannot be decoded after all.
    """
    if picture.bytes <= PLAIN_BYTES and picture.width * picture.height <= PLAIN_PIXELS:
        return picture.path.read_bytes(), _TYPES[picture.format]
    return shrink(picture, SHOWN, quality=88), "image/jpeg"


def shrink(picture: Picture, side: int, quality: int = 80) -> bytes:
    """A JPEG of a picture with no side longer than ``side``.

    Raises:
        DataError: if it cannot be decoded.
    """
    try:
        with Image.open(picture.path, formats=FORMATS) as opened:
            check_pixels(opened, MAX_PIXELS)  # it may have changed since
            opened.draft(None, (side, side))
            opened.load()
            image = flatten_mode(upright(opened), 3)
        image.thumbnail((side, side))
        packed = io.BytesIO()
        image.save(packed, "JPEG", quality=quality)
    except Exception as error:
        raise DataError(describe(error, picture.path)) from error
    return packed.getvalue()
