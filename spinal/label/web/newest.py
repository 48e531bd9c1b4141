"""The newest content of a file that another process replaces from time to time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from spinal.errors import FileFormatError

T = TypeVar("T")


class Newest(Generic[T]):
    """The content of a file, read again when the file has changed.

    A damaged file is deleted: the worker writes it again.

    Args:
        file: the file.
        load: reads it.
    """

    def __init__(self, file: Path, load: Callable[[Path], T]) -> None:
        self.file, self._load = file, load
        self._content: T | None = None
        self._read: tuple[int, int] | None = None

    def get(self) -> T | None:
        """The content; None if there is no such file, or it is damaged."""
        try:
            stat = self.file.stat()
        except FileNotFoundError:
            return None
        now = (stat.st_mtime_ns, stat.st_ino)
        if now != self._read:
            try:
                self._content, self._read = self._load(self.file), now
            except FileFormatError:
                self._content, self._read = None, None
                self.file.unlink(missing_ok=True)
        return self._content
