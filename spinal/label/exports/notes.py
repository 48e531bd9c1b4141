"""A CSV table of all notes and flags, including images without a label."""

from __future__ import annotations

from pathlib import Path

from spinal.errors import SpinalError
from spinal.label.exports.csv_table import write_table
from spinal.label.exports.labels import Labels


def write(labels: Labels, path: Path) -> list[Path]:
    """Write a row for each image and person who flagged it or wrote a note."""
    if labels.notes is None or not len(labels.notes):
        raise SpinalError("nothing is flagged or noted yet")
    write_table(labels.notes, path)
    return [path]
