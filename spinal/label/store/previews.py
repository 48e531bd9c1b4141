"""Copies of images for the page, kept on disk, and the reasons why files were refused."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinal.data.images import check_scans
from spinal.errors import DataError
from spinal.label.store.decoding import Decoders
from spinal.label.store.pictures import Picture, inspect

THUMBNAIL, SHOWN = 240, 1600
#: JPEG quality for each longest side.
_QUALITY = {THUMBNAIL: 80, SHOWN: 88}
#: Number of large copies to keep, of 0.3 MB each. All thumbnails are kept, of 10 kB each.
MOST_SHOWN = 1000
_END = b"\xff\xd9"  # of a JPEG


class Previews:
    """Copies of images with no side longer than `THUMBNAIL` or `SHOWN` pixels.

    A file that cannot be decoded is refused until it changes, also after a restart. The folder can
    be deleted at any time: copies are made again when needed.

    Args:
        folder: where they are kept.
        processes: number of processes that decode.
    """

    def __init__(self, folder: Path, processes: int = 2) -> None:
        self.folder, self.decoders = folder, Decoders(processes)

    def original(self, picture: Picture) -> bytes | None:
        """The file itself; None if its end is missing, so that only decoding shows if it is usable.

        Raises:
            DataError: if it is no longer there, or is a JPEG that a browser takes too long to show.
        """
        content = picture.read()
        if picture.format == "JPEG":
            with self._refusing(picture):
                check_scans(content)
        return content if _has_end(content, picture.format) else None

    def find(self, picture: Picture, side: int) -> bytes | None:
        """The copy; None if there is none."""
        with suppress(OSError):
            content = self._file(picture, side).read_bytes()
            if content.endswith(_END):  # not cut off when the machine lost power
                return content
        return None

    def make(self, picture: Picture, side: int) -> bytes:
        """The copy, which is made if it does not exist.

        Raises:
            DataError: if the file cannot be decoded.
        """
        if reason := self.refusal(picture):  # tried while this call waited
            raise DataError(reason)
        if copy := self.find(picture, side):
            return copy
        content = picture.read()
        with self._refusing(picture):
            copy = self.decoders.to_jpeg(content, side, _QUALITY[side])
        _write(self._file(picture, side), copy)
        if side == SHOWN:
            self._trim()
        return copy

    @contextmanager
    def _refusing(self, picture: Picture) -> Iterator[None]:
        """Remember an error inside the block."""
        try:
            yield
        except DataError as error:
            self.refuse(picture, str(error))
            raise

    def refuse(self, picture: Picture, reason: str) -> None:
        """Remember why a file cannot be decoded."""
        _write(self._file(picture, None), reason.encode())

    def refusal(self, picture: Picture) -> str | None:
        """Why a file cannot be decoded; None if it can, or was not tried."""
        with suppress(OSError):
            return self._file(picture, None).read_text(encoding="utf-8", errors="replace") or None
        return None

    def problem(self, folder: Path, name: str) -> str | None:
        """Why a file cannot be shown, from its header or an earlier attempt; None if it can."""
        try:
            return self.refusal(inspect(folder, name))
        except DataError as error:
            return str(error)

    def close(self) -> None:
        """End the processes."""
        self.decoders.close()

    def _file(self, picture: Picture, side: int | None) -> Path:
        state = f"{picture.name}\0{picture.n_bytes}\0{picture.modified}"
        key = hashlib.blake2b(state.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return self.folder / (f"{side}/{key}.jpg" if side else f"refused/{key}.txt")

    def _trim(self) -> None:
        """Delete the oldest large copies."""
        with suppress(OSError), os.scandir(self.folder / str(SHOWN)) as entries:
            files = [entry for entry in entries if entry.name.endswith(".jpg")]
            if len(files) > MOST_SHOWN:
                files.sort(key=lambda entry: entry.stat().st_mtime)
                for entry in files[: MOST_SHOWN // 10]:
                    os.unlink(entry.path)


def _has_end(content: bytes, format: str) -> bool:
    """Whether a JPEG, PNG or WebP file ends as such files do."""
    if format == "WEBP":
        return len(content) >= 8 + int.from_bytes(content[4:8], "little")
    return content.rstrip(b"\0").endswith(b"\xff\xd9" if format == "JPEG" else b"IEND\xaeB`\x82")


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; do nothing if that fails."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
