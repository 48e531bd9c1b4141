"""Features of the sets, computed once and kept as NumPy files.

A file has ``x_train [N, D]`` float32, ``y_train [N]`` int64, ``x_test``, ``y_test``, ``classes``,
``kind`` (``embedding``, ``text-svd`` or ``table``), and, for tables, ``categorical [D]`` bool. A
table is kept as it is: NaN where a value is missing, and codes in categorical columns.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.anywhere.sets import Points, SuiteEntry, read_raw
from spinal.data.texts import TfidfSVD
from spinal.encoders import encode, load_encoder

#: What the features of a set are, by their name in the suite; the others are whole networks.
KINDS = {
    "table": "table",
    "tfidf-svd": "text-svd",
    "sentences": "embedding",
    "efficientnet-lite0": "embedding",
}
#: The most points of each part that go through a large network.
MOST_ENCODED = {"efficientnet-lite0": (5000, 2000), "sentences": (3000, 1000)}
COMPONENTS = 128


def load_points(entry: SuiteEntry, cache: Path, encoder: Path | None = None) -> Points:
    """The points of a set with their features; images, where a whole network is trained.

    Args:
        entry: of the suite.
        cache: the folder where features are kept.
        encoder: a folder with ``tokenizer.json`` and ``onnx/model.onnx``, to embed sentences.
    """
    if entry.features not in KINDS:
        return read_raw(entry)
    path = cache / f"{entry.full}.npz"
    if not path.exists():
        _save(path, _computed(entry, encoder), KINDS[entry.features])
    with np.load(path) as file:
        names = {field.name for field in dataclasses.fields(Points)}
        return Points(**{name: file[name] for name in file.files if name in names})


def _computed(entry: SuiteEntry, encoder: Path | None) -> Points:
    points = read_raw(entry)
    if entry.features == "table":
        return points
    if entry.features == "tfidf-svd":
        x_train, x_test = tfidf_svd(points.x_train, points.x_test)
        return dataclasses.replace(points, x_train=x_train, x_test=x_test)
    train, test = MOST_ENCODED[entry.features]
    points = Points(
        points.x_train[:train], points.y_train[:train],
        points.x_test[:test], points.y_test[:test], points.classes,
    )  # fmt: skip
    if entry.features == "sentences" and encoder is None:
        raise SystemExit("sentences need --text-encoder, a folder with an ONNX model")
    sentences = entry.features == "sentences"
    by = load_encoder(f"sentences:{encoder}" if sentences else f"{entry.features}@128")
    return dataclasses.replace(
        points, x_train=encode(by, points.x_train), x_test=encode(by, points.x_test)
    )


def tfidf_svd(train: list[str], test: list[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """TF-IDF of words, and its largest singular vectors, both fitted to the training texts."""
    encoder = TfidfSVD(train, COMPONENTS)
    return encoder(train), encoder(test)


def _save(path: Path, points: Points, kind: str) -> None:
    arrays = {
        name: value for name, value in vars(points).items() if value is not None
    }  # not asdict, which copies
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, kind=np.array(kind), **arrays)
    part.rename(path)
