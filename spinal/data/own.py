"""Your own datasets, from a file or a folder, for experiments.

In a protocol::

    dataset = "reviews.csv"

    [data]
    text = "body"
    label = "stars"
    test = 0.25
    group = "author"

A path is relative to the working directory. A folder holds images, with a sub-folder for each
class. An ``.npz`` file holds ``x`` and ``y``, and maybe ``x_test`` and ``y_test``, ``classes`` and
``groups``. A ``.csv``, ``.tsv`` or ``.jsonl`` file holds a table.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from spinal.data.dataset import Dataset
from spinal.data.folders import load_folder
from spinal.data.inputs import as_points, points_like
from spinal.data.points import encode_labels
from spinal.data.splits import shuffled
from spinal.errors import DataError, FileFormatError


@dataclass(frozen=True)
class DataSettings:
    """How a file or a folder becomes a dataset: the table ``[data]`` of a protocol.

    Attributes:
        label: Column with the class.
        columns: Columns with the features; if empty, all other columns.
        text: Column with texts, instead of features.
        test: Share of the points for testing, the same in every run; or a file or folder with them.
        group: Column of groups; points of the same group stay on the same side of that split.
        size: Side in pixels to which images are scaled.
    """

    label: str = "label"
    columns: tuple[str, ...] = ()
    text: str | None = None
    test: float | str = 0.25
    group: str | None = None
    size: int = 32

    def __post_init__(self) -> None:
        if isinstance(self.test, float) and not 0 < self.test < 1:
            raise DataError(f"test = {self.test}: give a share of the points, or a file")
        if self.text is not None and self.columns:
            raise DataError("either text or columns: a text is the only feature")


class _Part(NamedTuple):
    """Points as they were read, with the names of their classes and of their groups."""

    data: Any
    labels: Sequence[str]
    groups: Sequence[str] | None = None


def load_own(path: Path, settings: DataSettings) -> Dataset:
    """Read a dataset; see the module.

    Raises:
        DataError: If something is missing: a column, a label, a kind of file.
    """
    parts = _read(path, settings)
    if len(parts) == 1 and isinstance(settings.test, str):
        test = Path(settings.test)
        if not test.exists():
            raise DataError(f"test = {settings.test!r}: there is no such file or folder")
        parts = [parts[0], _read(test, settings)[0]]
    for part, where in zip(parts, (path, settings.test), strict=False):
        unlabelled = [i for i, label in enumerate(part.labels) if label == ""]
        if unlabelled:
            raise DataError(f"{where}: point {unlabelled[0]} has no label")
    if len(parts) == 1:
        assert isinstance(settings.test, float)
        train, test_rows = _split(len(parts[0].labels), settings.test, parts[0].groups)
        parts = [_take(parts[0], train), _take(parts[0], test_rows)]
    return _dataset(parts, str(path), str(path))


def make_dataset(
    data: Any,
    labels: ArrayLike,
    *,
    test: float | tuple[Any, ArrayLike] = 0.25,
    groups: ArrayLike | None = None,
    name: str = "own",
) -> Dataset:
    """A dataset for `spinal.experiments.run_grid` from data in memory.

    Args:
        data: N points of any kind that `spinal.data.as_points` takes. Texts and tables are encoded
            by an encoder that is fitted to the training part.
        labels: ``[N]``, names or numbers of classes.
        test: Share of the points for testing, the same in every run; or test points and labels.
        groups: ``[N]``; points of the same group stay on the same side of that split.
        name: Name of the dataset.
    """
    part = _Part(data, _names(labels), None if groups is None else _names(groups))
    if isinstance(test, tuple):
        return _dataset([part, _Part(test[0], _names(test[1]))], name, "memory")
    train, test_rows = _split(len(part.labels), test, part.groups)
    return _dataset([_take(part, train), _take(part, test_rows)], name, "memory")


def _dataset(parts: Sequence[_Part], name: str, source: str) -> Dataset:
    train, test = parts
    codes, classes = encode_labels([*train.labels, *test.labels])
    points = as_points(train.data)
    others = points_like(points, test.data)
    n = len(train.labels)
    for each, labels in ((points, train.labels), (others, test.labels)):
        if len(each) != len(labels):
            raise DataError(f"{name}: {len(each)} points, but {len(labels)} labels")
    if others.shape[1:] != points.shape[1:]:
        raise DataError(f"{name}: points of shape {points.shape[1:]}, test {others.shape[1:]}")
    return Dataset(name, points, codes[:n], others, codes[n:], classes, source)


def _split(
    n: int, share: float, groups: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted positions of the training and test points; groups are not split."""
    of_point = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = shuffled(int(of_point.max()) + 1, 0)
    points_before = np.cumsum(np.bincount(of_point)[order])
    n_groups = int(np.searchsorted(points_before, share * n)) + 1
    is_test = np.isin(of_point, order[:n_groups])
    if is_test.all():
        raise DataError(f"a test share of {share} leaves no training points: the groups are large")
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _take(part: _Part, rows: NDArray[np.int64]) -> _Part:
    """Some rows of data of any kind."""
    data = part.data
    if hasattr(data, "iloc"):
        chosen = data.iloc[rows]
    elif hasattr(data, "shape"):
        chosen = data[rows] if not hasattr(data, "tocsr") else data.tocsr()[rows]
    else:
        chosen = [data[i] for i in rows.tolist()]
    return _Part(chosen, [part.labels[i] for i in rows])


def _names(values: ArrayLike) -> list[str]:
    return [str(value) for value in np.asarray(values).tolist()]


def _read(path: Path, settings: DataSettings) -> list[_Part]:
    """The part in a file or folder; two parts if it also holds a test part."""
    if path.is_dir():
        return [_read_folder(path, settings)]
    if path.suffix.lower() == ".npz":
        return _read_arrays(path)
    if path.suffix.lower() not in _TABLES:
        raise DataError(f"{path}: give a folder of images, .npz, {', '.join(_TABLES)}")
    return [_read_table(path, settings)]


def _read_folder(folder: Path, settings: DataSettings) -> _Part:
    loaded = load_folder(folder, settings.size)
    labels = [loaded.classes[code] if code >= 0 else "" for code in loaded.labels]
    return _Part(loaded.points, labels)


def _read_arrays(path: Path) -> list[_Part]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{path}: not a file of arrays, or one with objects") from error
    if not {"x", "y"} <= arrays.keys():
        raise DataError(
            f"{path}: holds {', '.join(arrays)}; write np.savez({path.name!r}, x=points, y=labels)"
        )
    classes = arrays.get("classes")
    parts = []
    for end in ("", "_test"):
        if f"x{end}" in arrays:
            if f"y{end}" not in arrays:
                raise DataError(f"{path}: holds x{end}, but no y{end}")
            labels = arrays[f"y{end}"]
            names = _names(labels if classes is None else classes[labels])
            groups = _names(arrays["groups"]) if "groups" in arrays and not end else None
            parts.append(_Part(arrays[f"x{end}"], names, groups))
    return parts


#: How a table is read, by the suffix of its file.
_TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: pd.read_csv(path),
    ".tsv": lambda path: pd.read_csv(path, sep="\t"),
    ".jsonl": lambda path: pd.read_json(path, lines=True),
}


def _read_table(path: Path, settings: DataSettings) -> _Part:
    try:
        table = _TABLES[path.suffix.lower()](path)
    except (OSError, ValueError) as error:  # including the errors of pandas
        raise DataError(f"{path}: not a table: {error}") from error
    features = list(settings.columns) or [
        name for name in table.columns if name not in (settings.label, settings.group)
    ]
    wanted = [settings.label, *([settings.group] if settings.group else [])]
    wanted += [settings.text] if settings.text else features
    if missing := [name for name in wanted if name not in table.columns]:
        raise DataError(
            f"{path}: no column {missing[0]!r} among {', '.join(map(str, table.columns))}: name "
            'columns in [data], such as label = "class"'
        )
    data = table[features]
    if settings.text:
        data = table[settings.text].fillna("").astype(str).tolist()
    labels = ["" if pd.isna(label) else str(label) for label in table[settings.label].tolist()]
    return _Part(data, labels, _names(table[settings.group]) if settings.group else None)
