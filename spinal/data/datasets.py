"""Datasets by name: found on disk, downloaded, or built in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from spinal.data.dataset import Dataset
from spinal.data.download import download as fetch
from spinal.data.formats import Part
from spinal.data.names import BUILT_IN, dataset_name, dataset_names
from spinal.data.own import DataSettings, load_own
from spinal.data.published import DIGITS, Published
from spinal.data.search import StoredDataset, find, missing, own_folder
from spinal.data.splits import shuffled, stratify
from spinal.data.table import PUBLISHED
from spinal.data.text_sets import (
    describe_text_set,
    find_text_set,
    find_text_sets,
    load_text_set,
)
from spinal.errors import DataError, FileFormatError, suggestion
from spinal.registry import find_own, is_own, registered

DIGITS_TEST = 500  # 50 of each class


@dataclass(frozen=True)
class DatasetRow:
    """What is known about a dataset before it is read.

    If the dataset was not found, ``format`` is None, ``source`` is empty, and ``missing`` names the
    files to put into ``folder``. ``problem`` says what is wrong with the files that were found.
    """

    name: str
    title: str
    source: str
    format: str | None
    train_shape: tuple[int, ...]
    test_shape: tuple[int, ...]
    classes: tuple[str, ...]
    folder: str = ""
    missing: tuple[str, ...] = ()
    problem: str = ""


def load_dataset(
    name: str = BUILT_IN,
    data_dir: str | Path | None = None,
    download: bool = True,
    data: DataSettings | None = None,
) -> Dataset:
    """Load a dataset by name, or from your own file or folder.

    The search goes through ``data_dir``, the folder in the environment variable ``SPINAL_DATA``,
    Debian's folder of datasets, and the user's cache. A dataset in none of them is downloaded into
    ``data_dir``, or into ``SPINAL_DATA`` if that is not given, or otherwise into the cache. Files
    are checked completely before use.

    Args:
        name: "digits" (built in), "mnist", "fashion-mnist", "cifar-10" or "svhn", in any spelling;
            see `dataset_name`. Or a folder of images, or a file; see `spinal.data.own`. Or a
            dataset of texts; see `spinal.data.text_sets`. Or the name of your own dataset; see
            `spinal.registry`.
        data_dir: Where to look first.
        download: Whether to download a dataset that was not found.
        data: How to read your own file or folder.

    Raises:
        DataError: If the name is unknown, or the dataset was not found and cannot be downloaded.
        FileFormatError: If a file is truncated, corrupt, or not what its name says.
    """
    name = dataset_name(name)
    if name not in dataset_names():
        return _load_own(name, data_dir, data)
    if name == BUILT_IN:
        return _load_digits()
    entry = PUBLISHED[name]
    stored = find(entry, data_dir)
    if stored is None:
        if not download:
            folder, names = missing(entry, data_dir)
            raise DataError(
                f"{entry.title} was not found: put {', '.join(names)} into {folder} "
                f"(from {entry.downloads[0].url.rsplit('/', 1)[0]}), or allow the download"
            )
        stored = _download(entry, data_dir)
    train, test = stored.layout.read(stored.files)
    where = f"{stored.folder} ({stored.layout.format}"
    _check_part(entry, train, entry.train_shape, f"{where}, training part)")
    _check_part(entry, test, entry.test_shape, f"{where}, test part)")
    extras = {f"train_{key}": value for key, value in train.extras.items()}
    extras |= {f"test_{key}": value for key, value in test.extras.items()}
    return Dataset(
        name=entry.name,
        train_images=train.images,
        train_labels=train.labels,
        test_images=test.images,
        test_labels=test.labels,
        classes=entry.classes,
        source=str(stored.folder),
        extras=extras,
    )


def list_datasets(data_dir: str | Path | None = None) -> list[DatasetRow]:
    """Which datasets are on disk and which are missing, judging by file names and sizes only."""
    digits = DatasetRow(
        name=BUILT_IN,
        title="Optical digits",
        source="built in",
        format="scikit-learn",
        train_shape=(1_797 - DIGITS_TEST, 8, 8, 1),
        test_shape=(DIGITS_TEST, 8, 8, 1),
        classes=DIGITS,
    )
    texts = [_text_row(folder) for folder in find_text_sets(data_dir)]
    return [digits, *(_row(entry, data_dir) for entry in PUBLISHED.values()), *texts]


def _text_row(folder: Path) -> DatasetRow:
    train, test, classes = describe_text_set(folder)
    return DatasetRow(folder.name, folder.name, str(folder), "CSV", (train,), (test,), classes)


def _load_own(name: str, data_dir: str | Path | None, data: DataSettings | None) -> Dataset:
    if Path(name).exists():
        return load_own(Path(name), data or DataSettings())
    if texts := find_text_set(name, data_dir):
        return load_text_set(texts)
    if not is_own("dataset", name):
        hint = suggestion(name.lower(), [*dataset_names(), *registered("dataset")])
        raise DataError(
            f"no dataset {name!r}: {hint}; there is no such file or folder either, "
            f"and no text/{name} in {own_folder(data_dir)} (with train.csv and test.csv)"
        )
    part = find_own("dataset", name)
    dataset = part() if callable(part) else part
    if not isinstance(dataset, Dataset):
        raise DataError(f"dataset {name}: gives a {type(dataset).__name__}, not a Dataset")
    return dataset


def _download(entry: Published, data_dir: str | Path | None) -> StoredDataset:
    folder = own_folder(data_dir) / entry.folders[0]
    try:
        for item in entry.downloads:
            fetch(item.url, folder / item.filename, item.md5)
    except DataError as error:
        names = ", ".join(item.filename for item in entry.downloads)
        raise DataError(f"{error}. {entry.title} consists of {names}") from error
    stored = find(entry, data_dir)
    assert stored is not None  # the downloaded files form one of the layouts
    return stored


def _row(entry: Published, data_dir: str | Path | None) -> DatasetRow:
    row = DatasetRow(
        name=entry.name,
        title=entry.title,
        source="",
        format=None,
        train_shape=entry.train_shape,
        test_shape=entry.test_shape,
        classes=entry.classes,
    )
    stored = find(entry, data_dir)
    if stored is None:
        folder, names = missing(entry, data_dir)
        return replace(row, folder=str(folder), missing=names)
    return replace(
        row,
        source=str(stored.folder),
        format=stored.layout.format,
        folder=str(stored.folder),
        problem="; ".join(stored.wrong_sizes()),
    )


def _check_part(entry: Published, part: Part, shape: tuple[int, ...], where: str) -> None:
    if part.images.shape != shape:
        raise FileFormatError(f"{where}: images of shape {part.images.shape}, expected {shape}")
    low, high = int(part.labels.min()), int(part.labels.max())
    if low < 0 or high >= len(entry.classes):
        raise FileFormatError(
            f"{where}: labels from {low} to {high}, expected 0 to {len(entry.classes) - 1}"
        )


def _load_digits() -> Dataset:
    """scikit-learn's digits, 8 x 8; the test part is a fixed random draw of 50 from each class."""
    images, labels = load_digits(return_X_y=True)
    images = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
    labels = labels.astype(np.int64)
    order = stratify(shuffled(len(labels), 0), labels)
    test, train = np.sort(order[:DIGITS_TEST]), np.sort(order[DIGITS_TEST:])
    return Dataset(
        name=BUILT_IN,
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        classes=DIGITS,
        source="built in",
    )
