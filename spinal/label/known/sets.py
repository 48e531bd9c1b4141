"""Known labels from a table, where an image can have several classes."""

from __future__ import annotations

import re
from pathlib import Path

from spinal.data.text_files import read_columns
from spinal.errors import DataError
from spinal.label.known.table import COLUMNS
from spinal.label.store.sets import split
from spinal.label.store.texts import clean, text_name

_MARKS = {"1": True, "0": False, "": False, "true": True, "false": False}
#: The column of a class in tables that spinal writes.
_MARKED = re.compile(r"y\((.*)\)")


def read_sets(table: Path, text_column: str | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """File, or name of a text, and all its classes, for each row that has a label.

    The classes are in a column ``label``, as ``cat;dog`` or in one row each; an empty cell is no
    label. Or each class has a column of 0 and 1, named ``y(cat)``, or just ``cat`` if there is no
    column ``label``. Then 0 in all columns means "none of these", and empty cells mean no label.

    Args:
        table: the file: CSV, TSV or JSONL.
        text_column: the column with the texts; None for images.

    Raises:
        DataError: if it is not a table with such columns.
    """
    columns = read_columns(table)
    pairs = [(text_column, "label")] if text_column is not None else list(COLUMNS)
    chosen = next((pair for pair in pairs if pair[0] in columns), None)
    if chosen is None:
        raise DataError(f"{table}: no column {pairs[0][0]}, but {', '.join(map(str, columns))}")
    key, label = chosen
    keys = [name.strip() for name in columns[key]]
    if text_column is not None:
        keys = [text_name(clean(text)) for text in columns[key]]
    marks = _marked(columns, key, has_label=label in columns)
    found: dict[str, tuple[str, ...]] = {}
    for i, name in enumerate(keys):
        if marks:
            cells = {c: values[i].strip().lower() for c, values in marks.items()}
            if any(cells.values()):
                found[name] = tuple(c for c, cell in cells.items() if _MARKS[cell])
        elif classes := split(columns[label][i]):
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), *classes)))
    return list(found.items())


def _marked(columns: dict[str, list[str]], key: str, *, has_label: bool) -> dict[str, list[str]]:
    """The columns of 0 and 1, by class."""
    own = {m[1]: columns[c] for c in columns if (m := _MARKED.fullmatch(c))}
    if not own and not has_label:
        own = {
            c: values for c, values in columns.items()
            if c != key and any(values) and all(v.strip().lower() in _MARKS for v in values)
        }  # fmt: skip
    for name, values in own.items():
        if wrong := next((v for v in values if v.strip().lower() not in _MARKS), None):
            raise DataError(f"{wrong!r} in the column of {name!r}: 0 and 1 are expected")
    if not own and not has_label:
        raise DataError("no column label, and no columns of 0 and 1 for the classes")
    return own
