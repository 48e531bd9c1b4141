"""Datasets of texts: ``text/NAME/train.csv`` and ``test.csv`` in a data folder.

Both are tables with the columns ``text`` and ``label``. None is built in or downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spinal.data.dataset import Dataset
from spinal.data.own import DataSettings, load_own
from spinal.data.search import data_folders
from spinal.data.text_files import COLUMN, read_column

_TRAIN, _TEST = "train.csv", "test.csv"


def find_text_sets(data_dir: str | Path | None) -> Iterator[Path]:
    """The folders of all datasets of texts, each name once."""
    names: set[str] = set()
    for base in data_folders(data_dir):
        for folder in sorted((base / "text").glob("*/")):
            is_whole = (folder / _TRAIN).is_file() and (folder / _TEST).is_file()
            if is_whole and folder.name not in names:
                names.add(folder.name)
                yield folder


def find_text_set(name: str, data_dir: str | Path | None) -> Path | None:
    """The folder of a dataset of texts; None if there is none."""
    return next((path for path in find_text_sets(data_dir) if path.name == name.lower()), None)


def load_text_set(folder: Path) -> Dataset:
    """Read a dataset of texts.

    Raises:
        DataError: if one of its files is not a table with the columns ``text`` and ``label``.
    """
    settings = DataSettings(text=COLUMN, test=str(folder / _TEST))
    return replace(load_own(folder / _TRAIN, settings), name=folder.name, source=str(folder))


def describe_text_set(folder: Path) -> tuple[int, int, tuple[str, ...]]:
    """Numbers of training and test texts, and the classes."""
    train, test = (read_column(folder / name, "label") for name in (_TRAIN, _TEST))
    return len(train), len(test), tuple(sorted(set(train) | set(test)))
