"""The sets of the suite: points as they are stored, divided into a pool and a test part.

Texts, images and tables are looked for in the folder that the environment variable ``SPINAL_DATA``
names; ``suite.toml`` says how they lie there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.datasets
from numpy.typing import NDArray
from PIL import Image

from spinal import load_dataset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUITE = Path(__file__).with_name("suite.toml")
#: The most points that are used of a set: of its training part, and of its test part.
MOST = (8000, 2000)
PARTS = ("train", "test")


@dataclass(frozen=True)
class SuiteEntry:
    """A line of the suite: a set of points, and what is known of each.

    Attributes:
        name: of the set.
        features: what a point is described by, or the network that is trained on images.
        source: where the points come from; see ``suite.toml``.
        half: ``develop`` or ``report``.
    """

    name: str
    features: str
    source: str
    half: str

    @property
    def full(self) -> str:
        """The name in results and of files."""
        return f"{self.name}--{self.features}"


def read_suite(
    half: str | None = None,
    only: Collection[str] | None = None,
    features: Collection[str] | None = None,
) -> Iterator[SuiteEntry]:
    """The lines of the suite, in its order.

    Args:
        half: those of this half; None: of both.
        only: those with such a name, or full name; None: all.
        features: those with such features; None: all.
    """
    for name, entry in tomllib.loads(SUITE.read_text()).items():
        for kind in entry["features"]:
            line = SuiteEntry(name, kind, entry["source"], entry["half"])
            if (
                (half is None or line.half == half)
                and (not only or line.name in only or line.full in only)
                and (features is None or kind in features)
            ):
                yield line


@dataclass(frozen=True, eq=False)
class Points:
    """A set, read: points ``[N, ...]`` and class numbers ``[N]`` of two parts.

    Attributes:
        x_train: the pool: features ``[N, D]``, images ``[N, H, W, C]``, or a list of N texts.
        y_train: their classes.
        x_test: the test part.
        y_test: their classes.
        classes: the names.
        categorical: which columns of a table hold codes of categories, ``[D]``; None elsewhere.
    """

    x_train: Any
    y_train: NDArray[np.int64]
    x_test: Any
    y_test: NDArray[np.int64]
    classes: NDArray[np.str_]
    categorical: NDArray[np.bool_] | None = None


def read_raw(entry: SuiteEntry) -> Points:
    """The points of a set as they are stored, at most `MOST` of them, drawn once for all."""
    readers = {
        "published": _published,
        "text": _texts,
        "images": _image_files,
        "table": _table_file,
        "sklearn": _sklearn_table,
    }
    return readers[entry.source](entry.name)


def _published(name: str) -> Points:
    data = load_dataset(name)
    certain = data.extras.get("test_certain")  # labels that are known to be right (SVHN)
    usable = np.arange(len(data.test_labels)) if certain is None else np.flatnonzero(certain == 2)
    train, test = _draw(len(data.train_labels), MOST[0]), usable[_draw(len(usable), MOST[1])]
    return Points(
        np.asarray(data.train_images[train]), data.train_labels[train],
        np.asarray(data.test_images[test]), data.test_labels[test], np.array(data.classes),
    )  # fmt: skip


def _texts(name: str) -> Points:
    train, test = (
        pd.read_csv(_folder() / "text" / name / f"{part}.csv", keep_default_na=False)
        for part in PARTS
    )
    train, test = train.iloc[_draw(len(train), MOST[0])], test.iloc[_draw(len(test), MOST[1])]
    classes, y_train, y_test = _codes(train["label"], test["label"])
    return Points(list(train["text"]), y_train, list(test["text"]), y_test, classes)


def image_paths(name: str, part: str) -> list[Path]:
    """The files of the points of a set of images, in their order.

    Args:
        name: of the set.
        part: ``train`` or ``test``.
    """
    paths = sorted((_folder() / "images" / name / part).glob("*/*"))
    return [paths[i] for i in _draw(len(paths), MOST[PARTS.index(part)])]


def _image_files(name: str) -> Points:
    parts: list[Any] = []
    for part in PARTS:
        paths = image_paths(name, part)
        parts.append([_read_image(path) for path in paths])
        parts.append(pd.Series([path.parent.name for path in paths]))
    x_train, train, x_test, test = parts
    classes, y_train, y_test = _codes(train, test)
    return Points(x_train, y_train, x_test, y_test, classes)


def _read_image(path: Path) -> Image.Image:
    with Image.open(path) as image:
        image.load()
        return image


def _table_file(name: str) -> Points:
    table = pd.read_csv(_folder() / "tables" / f"{name}.csv")
    labels = table.pop("label").astype(str)
    # The columns of a board are categories, whether a letter or a number names them.
    categorical = np.array([
        name == "kr-vs-k" or not pd.api.types.is_numeric_dtype(table[c]) for c in table
    ])  # fmt: skip
    columns = [
        pd.Series(pd.factorize(table[c], sort=True)[0]).replace(-1, np.nan)
        if of_codes
        else table[c]
        for c, of_codes in zip(table, categorical, strict=True)
    ]
    x = np.stack([np.asarray(c, np.float32) for c in columns], axis=1)
    # Satellite images: the published test rows come last, and are of other places.
    return _divided(x, labels, categorical, published=4435 if name == "satimage" else None)


def _sklearn_table(name: str) -> Points:
    bunch = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")()
    x = np.asarray(bunch.data, np.float32)
    labels = pd.Series(np.asarray(bunch.target_names)[bunch.target]).astype(str)
    return _divided(x, labels, np.zeros(x.shape[1], bool))


def _divided(
    x: NDArray[np.float32],
    labels: pd.Series,
    categorical: NDArray[np.bool_],
    published: int | None = None,
) -> Points:
    """A table divided into its published parts, or into three quarters and a quarter by chance."""
    order = _draw(len(x), len(x))
    first = published or len(x) - min(MOST[1], len(x) // 4)
    train, test = (order[order < first], order[order >= first]) if published else (
        order[:first], order[first:]
    )  # fmt: skip
    train, test = train[: MOST[0]], test[: MOST[1]]
    classes, y_train, y_test = _codes(labels.iloc[train], labels.iloc[test])
    return Points(x[train], y_train, x[test], y_test, classes, categorical)


def _codes(train: pd.Series, test: pd.Series) -> tuple[NDArray, NDArray, NDArray]:
    """The classes of both parts, in order, and each part as numbers of classes."""
    classes, codes = np.unique(np.concatenate([train, test]).astype(str), return_inverse=True)
    return classes, codes[: len(train)].astype(np.int64), codes[len(train) :].astype(np.int64)


def _draw(n: int, most: int) -> NDArray[np.int64]:
    """Some of n points in random order; always the same ones."""
    return np.random.default_rng(0).permutation(n)[:most]


def _folder() -> Path:
    named = os.environ.get("SPINAL_DATA")
    if not named:
        raise SystemExit("SPINAL_DATA must name the folder with text/, images/ and tables/")
    return Path(named)
