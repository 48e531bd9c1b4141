"""Image folders, and tables of image paths, as labelled points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from spinal.data.images import SUFFIXES, ImageFiles
from spinal.data.points import LabelledPoints, encode_labels
from spinal.data.walking import is_hidden, walk_files
from spinal.errors import DataError


def load_folder(
    folder: str | Path, size: int | tuple[int, int] = 32, **options: Any
) -> LabelledPoints:
    """Images in a folder: each sub-folder is a class; images outside of sub-folders are unlabelled.

    Sub-folders are searched to any depth. Hidden files and folders are skipped, symbolic links are
    followed, and images are ordered by path, so the order is the same on every machine.

    Args:
        folder: Where the images are. Empty sub-folders are classes without examples.
        size: (H, W) of every image after scaling; one number for squares.
        options: As for `ImageFiles`: ``channels``, ``fit``, ``check``, ``cache``, ``threads`` and
            ``max_pixels``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    classes = sorted(p.name for p in folder.iterdir() if p.is_dir() and not is_hidden(p.name))
    files = sorted(walk_files(folder, on_error=_refuse_unreadable))
    paths = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise DataError(f"{folder}: no images ({', '.join(SUFFIXES)}) among its {len(files)} files")
    parts = [path.relative_to(folder).parts for path in paths]
    labels = [inside[0] if len(inside) > 1 else "" for inside in parts]
    return _labelled_images(folder, paths, labels, [str(p) for p in paths], classes, size, options)


def load_csv(
    csv: str | Path,
    size: int | tuple[int, int] = 32,
    path_column: str = "path",
    label_column: str | None = "label",
    classes: Sequence[str] | None = None,
    **options: Any,
) -> LabelledPoints:
    """Images listed in a CSV table: a column of paths and a column of class names.

    Paths are relative to the table's folder.

    An empty label means unlabelled. Classes are sorted, numbers by value, unless ``classes`` gives
    them; ``label_column=None`` reads paths only. Other arguments are as in `load_folder`.
    """
    csv = Path(csv)
    try:
        table = pd.read_csv(csv, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{csv}: {error.strerror or error}") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(f"{csv}: not a CSV table: {error}") from error
    for column in (path_column, label_column):
        if column is not None and column not in table.columns:
            raise DataError(f"{csv}: no column {column!r} among {', '.join(table.columns)}")
    names = [name.strip() for name in table[path_column]]
    if not names:
        raise DataError(f"{csv}: no rows")
    rows = [f"row {number}" for number in range(2, len(names) + 2)]  # row 1 holds the column names
    if "" in names:
        raise DataError(f"{csv}: {rows[names.index('')]} has no path")
    if odd := next((row for row, name in zip(rows, names, strict=True) if "\0" in name), None):
        raise DataError(f"{csv}: {odd}: its path is not a text")
    paths = [csv.parent / name for name in names]
    labels = [""] * len(paths)
    if label_column is not None:
        labels = [label.strip() for label in table[label_column]]
    return _labelled_images(csv, paths, labels, rows, classes, size, options)


def _labelled_images(
    source: Path,
    paths: Sequence[Path],
    labels: Sequence[str],
    entries: Sequence[str],
    classes: Sequence[str] | None,
    size: int | tuple[int, int],
    options: dict[str, Any],
) -> LabelledPoints:
    """Combine points and labels; ``entries`` names each path in errors."""
    _refuse_repeats(source, paths, labels, entries)
    try:
        encoded, names = encode_labels(labels, classes)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    points = ImageFiles(paths, size, **options)
    if not len(points):
        first = points.skipped[0]
        raise DataError(
            f"{source}: none of the {len(paths)} images can be read; {first.path}: {first.reason}"
        )
    return LabelledPoints(points, encoded[points.readable], names, points.skipped)


def _refuse_repeats(
    source: Path, paths: Sequence[Path], labels: Sequence[str], entries: Sequence[str]
) -> None:
    """Refuse a file that is listed twice: it would be asked twice, perhaps with two labels."""
    first: dict[str, int] = {}
    for i, path in enumerate(paths):
        j = first.setdefault(os.path.realpath(path), i)
        if i != j:
            what = f"{source}: {entries[j]} and {entries[i]} are the same file"
            if labels[i] != labels[j]:
                what += f" with two labels, {labels[j]!r} and {labels[i]!r}"
            raise DataError(what)


def _refuse_unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename}: {error.strerror}") from error
