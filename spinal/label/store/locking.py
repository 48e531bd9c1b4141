"""One process at a time works on a project."""

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
    """Inside, no other process serves or fits the project in this folder.

    Raises:
        InUseError: if another one does.
    """
    try:
        with FileLock(home / "lock", timeout=0):
            yield
    except Timeout:
        raise InUseError(
            f"{home}: is open in another `spinal label`; use that one's page, or end it"
        ) from None
