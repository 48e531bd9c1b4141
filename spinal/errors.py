"""Errors with messages that state what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable


class SpinalError(Exception):
    """Base of every error that spinal raises on purpose; the command line prints it on one line."""


class StructureError(SpinalError, ValueError):
    """A circuit that cannot be built, or would not be a probability model if it were."""


class FileFormatError(SpinalError, ValueError):
    """A file that is not what it should be: truncated, corrupt, or not one of ours."""


class DataError(SpinalError, ValueError):
    """Data that are not there, or cannot be used as they are."""


class LabelError(SpinalError, ValueError):
    """An answer that cannot be taken: unknown point, unknown class, or a contradiction."""


def suggestion(wrong: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """For a message about a wrong name: the nearest right one, or else all of them."""
    names = list(names)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
