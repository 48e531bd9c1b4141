"""Untrusted image files, opened safely and checked by their header before they are decoded."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spinal.data.images import open_image
from spinal.errors import DataError

#: Do not follow links, do not wait for pipes; on Windows, do not open files as text.
_FLAGS = os.O_RDONLY | sum(getattr(os, f"O_{n}", 0) for n in ("NOFOLLOW", "NONBLOCK", "BINARY"))


@dataclass(frozen=True)
class Picture:
    """An image file of a folder whose header was read.

    Attributes:
        folder: the folder.
        name: path in it.
        format: such as "PNG".
        mode: of the pixels, as Pillow names it.
        width: in pixels.
        height: in pixels.
        n_bytes: size of the file.
        modified: time of the last change in nanoseconds.
    """

    folder: Path
    name: str
    format: str
    mode: str
    width: int
    height: int
    n_bytes: int
    modified: int

    def read(self) -> bytes:
        """The content of the file, up to its size when the header was read.

        Raises:
            DataError: if it is no longer there.
        """
        with open_inside(self.folder, self.name) as file:
            return file.read(self.n_bytes)


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


def open_inside(folder: Path, name: str) -> BinaryIO:
    """Open a file of a folder, by its real path.

    Anybody who can write to the folder could replace the file, or a folder above it, with a link
    after the path was checked. So the path is checked again when the file is open: it must still
    lead to the same file.

    Raises:
        DataError: if it does not exist, cannot be read, or is not inside the folder.
    """
    try:
        file = os.fdopen(os.open(locate(folder, name), _FLAGS), "rb")
    except OSError as error:
        raise DataError(error.strerror or "cannot be opened") from error
    try:
        opened, there = os.fstat(file.fileno()), os.lstat(locate(folder, name))
        if not (stat.S_ISREG(opened.st_mode) and os.path.samestat(opened, there)):
            raise DataError("leads out of the folder")
    except BaseException:
        file.close()
        raise
    return file


def inspect(folder: Path, name: str) -> Picture:
    """Read the header of an image file of a folder; nothing is decoded.

    Raises:
        DataError: if it is not an image, too large, or claims more pixels than it can hold.
    """
    with open_inside(folder, name) as file, open_image(file) as image:
        state = os.fstat(file.fileno())
        return Picture(
            folder, name, str(image.format), image.mode, image.width, image.height, state.st_size,
            state.st_mtime_ns,
        )  # fmt: skip
