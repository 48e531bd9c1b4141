"""A folder for each class, with copies of its images."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from spinal.errors import SpinalError
from spinal.label.exports.csv_table import write_table
from spinal.label.exports.labels import Labels
from spinal.label.store.pictures import locate


def write(labels: Labels, folder: Path) -> list[Path]:
    """Write a folder for each class, with copies of its images.

    With predictions, there are two such trees, ``labelled`` and ``predicted``, and a table of
    predictions.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpinalError(f"{folder} already exists: choose another with --out, or remove it")
    partial = folder.with_name(folder.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    names = folder_names(labels.classes)
    given = zip(labels.given["path"], labels.given["label"], strict=True)
    if labels.predicted is None:
        _copy(labels.folder, given, names, partial)
    else:
        _copy(labels.folder, given, names, partial / "labelled")
        pairs = zip(labels.predicted["path"], labels.predicted["predicted"], strict=True)
        _copy(labels.folder, pairs, names, partial / "predicted")
        write_table(labels.predicted, partial / "predictions.csv")
    if folder.exists():
        folder.rmdir()
    partial.rename(folder)
    return [folder]


def _copy(
    source: Path, pairs: Iterable[tuple[str, str]], names: dict[str, str], target: Path
) -> None:
    for name in names.values():  # also for a class without images
        (target / name).mkdir(parents=True)
    for path, label in pairs:
        copy = target / names[label] / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(locate(source, path), copy)


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """A folder name for each class, valid on any system and different from the others."""
    names: dict[str, str] = {}
    for label in classes:
        name = re.sub(r'[/\\:*?"<>|\0]', "_", label).strip(". ") or "_"
        while name.lower() in {taken.lower() for taken in names.values()}:
            name += "_"
        names[label] = name
    return names
