"""Texts from files: a column of a table, or the files of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from spinal.data.walking import walk_files
from spinal.errors import DataError

#: Suffixes of tables.
TABLES = (".csv", ".tsv", ".jsonl")
#: The default column of texts.
COLUMN = "text"
#: A longer text is cut off: 10 MB of ASCII.
_MOST_BYTES = 10_000_000


def is_table(path: Path) -> bool:
    """Whether a path has the suffix of a table."""
    return path.suffix.lower() in TABLES


def read_column(path: Path, column: str = COLUMN) -> list[str]:
    """A column of a CSV, TSV or JSONL file, as texts; empty where there is no value.

    Raises:
        DataError: if it is not such a table, or has no such column.
    """
    columns = read_columns(path)
    if column not in columns:
        names = ", ".join(map(str, columns))
        raise DataError(f"{path}: no column {column!r} among {names}: choose with --text-column")
    return columns[column]


def read_columns(path: Path) -> dict[str, list[str]]:
    """All columns of a CSV, TSV or JSONL file, as texts; empty where there is no value.

    Raises:
        DataError: if it is not such a table.
    """
    try:
        return _read_lines(path) if path.suffix.lower() == ".jsonl" else _read_csv(path)
    except (OSError, ValueError) as error:  # including errors of pandas and of decoding
        raise DataError(f"{path}: cannot be read as a table: {error}") from error


def _read_csv(path: Path) -> dict[str, list[str]]:
    import pandas as pd  # slow to import: who labels images does not wait for it

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    # Texts are read unchanged: "NA" and "007" are not converted.
    table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    return {str(name): table[name].tolist() for name in table.columns}


def _read_lines(path: Path) -> dict[str, list[str]]:
    # Not splitlines, which also splits at other characters.
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    objects = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(each, dict) for each in objects):
        raise ValueError("a line that is not a JSON object")
    names = dict.fromkeys(name for each in objects for name in each)
    return {name: [_as_text(each.get(name)) for each in objects] for name in names}


def _as_text(value: object) -> str:
    return "" if value is None else str(value)


def find_text_files(folder: Path) -> Iterator[str]:
    """Names of all ``.txt`` files below a folder, sorted, with slashes; hidden ones are skipped."""
    for path in walk_files(folder, follow_links=False):
        name = path.relative_to(folder).as_posix()
        if name.lower().endswith(".txt") and name.isprintable():
            yield name


def read_text_file(path: Path) -> str:
    """The text of a file, as UTF-8 or otherwise Windows-1252.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
