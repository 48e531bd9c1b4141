"""Errors with messages that state what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable


class SpinalError(Exception):
    """Base of every error that spinal raises on purpose; the command line prints it on one line."""


class StructureError(SpinalError, ValueError):
    """A circuit that cannot be built, or that would not be a valid probability model."""


class FileFormatError(SpinalError, ValueError):
    """A file that is truncated, corrupt, or not written by spinal."""


class DataError(SpinalError, ValueError):
    """Data that are missing, or cannot be used."""


class LabelError(SpinalError, ValueError):
    """A label that cannot be stored: unknown point, unknown class, or a contradiction."""


def suggestion(wrong: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """For a message about a wrong name: the most similar valid name, or all valid names."""
    names = list(names)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its type if there is no message."""
    return str(error).partition("\n")[0] or type(error).__name__
