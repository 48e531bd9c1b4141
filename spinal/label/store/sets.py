"""Sets of classes, and the text that stands for one in the label file.

In a project with several classes for an image, a label is a set of them. It is kept as a JSON list
of their names, sorted: the same set is always the same text, SQLite can look into it, and ``[]`` is
"none of these".
"""

from __future__ import annotations

import json
from collections.abc import Iterable

#: Between the names of a set in tables. No class of such a project may have it in its name.
SEPARATOR = ";"

#: A class; where an image can have several, all that it has.
Label = str | tuple[str, ...]


def to_text(names: Iterable[str]) -> str:
    """The text that stands for a set of classes."""
    return json.dumps(sorted(set(names)), ensure_ascii=False)


def from_text(text: str) -> tuple[str, ...]:
    """The classes of a set, sorted."""
    return tuple(json.loads(text))


def split(text: str) -> tuple[str, ...]:
    """The classes that a cell of a table names, such as ``cat;dog``."""
    return tuple(name for part in text.split(SEPARATOR) if (name := part.strip()))


def join(names: Iterable[str]) -> str:
    """The cell of a table that names these classes."""
    return SEPARATOR.join(names)
