"""A small HTML table, to display objects in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any


def html_table(title: str, rows: Mapping[str, Any]) -> str:
    """A table with a title and a row for each key, as HTML."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(str(key))}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for key, value in rows.items()
    )
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"
