"""Known labels from a CSV table."""

from __future__ import annotations

from pathlib import Path

from spinal.data.text_files import read_column
from spinal.errors import DataError
from spinal.label.store.texts import clean, text_name

#: Names of the columns in tables from spinal and from Label Studio.
COLUMNS = (("path", "label"), ("image", "choice"))


def read_table(table: Path) -> list[tuple[str, str]]:
    """File and class of each row that has a class.

    Raises:
        DataError: if it is not a CSV table with such columns.
    """
    import pandas as pd

    try:
        rows = pd.read_csv(table, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise DataError(f"{table}: cannot be read as a CSV table ({error})") from error
    for path, label in COLUMNS:
        if {path, label} <= set(rows.columns):
            pairs = zip(rows[path], rows[label], strict=True)
            return [(name.strip(), said.strip()) for name, said in pairs if said.strip()]
    raise DataError(f"{table}: no columns path and label, but {', '.join(map(str, rows.columns))}")


def read_text_table(table: Path, column: str) -> list[tuple[str, str]]:
    """Name and class of each text that has a class, from the text column and ``label``.

    Raises:
        DataError: if it is not a table with such columns.
    """
    texts, labels = read_column(table, column), read_column(table, "label")
    pairs = zip(texts, labels, strict=True)
    return [(text_name(clean(text)), said.strip()) for text, said in pairs if said.strip()]
