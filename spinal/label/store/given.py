"""Projects of texts that are passed in Python instead of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spinal.data.text_files import COLUMN
from spinal.errors import DataError
from spinal.files import write_text
from spinal.label.store.project import Project, open_project


def open_texts(
    texts: Any, home: str | Path, *, text_column: str = COLUMN, **settings: Any
) -> Project:
    """Open a project of texts, or create one if classes are given.

    The texts are stored in the project, so that ``spinal label HOME`` and the other commands find
    them. A second call with more texts adds them; labels stay with their texts.

    Args:
        texts: a DataFrame, or a sequence of strings.
        home: the project folder.
        text_column: the column of the DataFrame.
        settings: see `spinal.label.store.project.open_project`.

    Raises:
        DataError: if there is no such column, or an element is not a string.
    """
    if hasattr(texts, "columns"):
        if text_column not in texts.columns:
            raise DataError(f"no column {text_column!r} among {', '.join(map(str, texts.columns))}")
        texts = ["" if text is None or text != text else text for text in texts[text_column]]
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {i} is a {type(text).__name__}: give strings")
    home = Path(home).expanduser().absolute()
    home.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({COLUMN: text}, ensure_ascii=False) + "\n" for text in texts]
    table = home / "given.jsonl"
    write_text(table, "".join(lines))
    return open_project(table, home, **settings)
