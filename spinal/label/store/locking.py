"""A lock: only one process at a time works on a project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from spinal.errors import SpinalError


class InUseError(SpinalError):
    """The project is open in another process."""


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Inside the block, no other process serves or fits the project in this folder.

    Raises:
        InUseError: if another process does.
    """
    try:
        with FileLock(home / "lock", timeout=0):
            yield
    except Timeout:
        raise InUseError(
            f"{home}: is open in another `spinal label`; use its page, or end it"
        ) from None
