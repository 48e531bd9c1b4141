"""Formats by name. To add one, write a file with a function `write`, and add a line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from spinal.label.exports import coco, csv_table, folders, json_lines, label_studio, notes
from spinal.label.exports.labels import Labels


class Format(NamedTuple):
    """A form to write labels in.

    Attributes:
        default: the file or folder to write, unless another is named.
        write: writes labels to it, whole or not at all, and returns what was written.
        for_texts: whether it can hold texts.
        for_sets: whether an image can have several classes in it.
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
