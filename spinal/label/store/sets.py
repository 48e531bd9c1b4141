"""Sets of classes, and how the label file stores them as text.

Where an image can have several classes, a label is a set of them. It is stored as a JSON list of
their names, sorted: equal sets have equal texts, SQLite can search them, and ``[]`` means "none of
these".
"""

from __future__ import annotations

import json
from collections.abc import Iterable

#: Between the names of a set in tables. No class name of such a project may contain it.
SEPARATOR = ";"

#: A class, or all classes of an image that can have several.
Label = str | tuple[str, ...]


def to_text(names: Iterable[str]) -> str:
    """The stored text of a set of classes."""
    return json.dumps(sorted(set(names)), ensure_ascii=False)


def from_text(text: str) -> tuple[str, ...]:
    """The classes in a stored text, sorted."""
    return tuple(json.loads(text))


def split(text: str) -> tuple[str, ...]:
    """The classes in a table cell, such as ``cat;dog``."""
    return tuple(name for part in text.split(SEPARATOR) if (name := part.strip()))


def join(names: Iterable[str]) -> str:
    """The table cell for these classes."""
    return SEPARATOR.join(names)
