"""Untrusted image files, checked by their header before they are decoded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spinal.data.images import open_image
from spinal.errors import DataError


@dataclass(frozen=True)
class Picture:
    """A file that may be decoded: its real path, format and size."""

    path: Path
    format: str
    width: int
    height: int
    bytes: int


def locate(folder: Path, name: str) -> Path:
    """The real path of a file of a folder, with all links resolved.

    Raises:
        DataError: if it does not exist, or is not inside the folder.
    """
    real = Path(os.path.realpath(folder / name))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise DataError("leads out of the folder")
    if not real.is_file():
        raise DataError("no such file")
    return real


def inspect(folder: Path, name: str) -> Picture:
    """Read the header of an image file of a folder; nothing is decoded.

    Raises:
        DataError: if it is not an image, too large, or claims more pixels than it can hold.
    """
    path = locate(folder, name)
    with open_image(path) as image:
        size = path.stat().st_size
        return Picture(path, str(image.format), image.width, image.height, size)


def problem(folder: Path, name: str) -> str | None:
    """Why a file of a folder cannot be shown, by its header; None if it can."""
    try:
        inspect(folder, name)
    except DataError as error:
        return str(error)
    return None
