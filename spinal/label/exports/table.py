"""The export formats. To add one, write a file with a function `write`, and add a line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from spinal.label.exports import coco, csv_table, folders, json_lines, label_studio, notes
from spinal.label.exports.labels import Labels


class Format(NamedTuple):
    """An export format.

    Attributes:
        default: the default name of the file or folder.
        write: writes labels to it, atomically, and returns the files written.
        for_texts: whether it supports texts.
        for_sets: whether it supports several classes for an image.
    """

    default: str
    write: Callable[[Labels, Path], list[Path]]
    for_texts: bool = True
    for_sets: bool = True


FORMATS: dict[str, Format] = {
    "csv": Format("labels.csv", csv_table.write),
    "jsonl": Format("labels.jsonl", json_lines.write),
    "imagefolder": Format("labelled", folders.write, for_texts=False, for_sets=False),
    "coco": Format("labels.coco.json", coco.write, for_texts=False),
    "label-studio": Format("label-studio.json", label_studio.write),
    "notes": Format("notes.csv", notes.write),
}
