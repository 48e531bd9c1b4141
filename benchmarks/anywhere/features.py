"""Features of the sets, computed once and kept as NumPy files.

A file has ``x_train [N, D]`` float32, ``y_train [N]`` int64, ``x_test``, ``y_test``, ``classes``,
``kind`` (``embedding``, ``text-svd`` or ``table``), and, for tables, ``categorical [D]`` bool. A
table is kept as it is: NaN where a value is missing, and codes in categorical columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.anywhere.sets import Points, SuiteEntry, read_raw

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
TOKENS = 128


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
    encode = _sentence_encoder(encoder) if entry.features == "sentences" else _image_encoder()
    return dataclasses.replace(points, x_train=encode(points.x_train), x_test=encode(points.x_test))


def tfidf_svd(train: list[str], test: list[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """TF-IDF of words, and its largest singular vectors, both fitted to the training texts."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    svd = TruncatedSVD(COMPONENTS, random_state=0)
    x_train = svd.fit_transform(words.fit_transform(train))
    return x_train.astype(np.float32), svd.transform(words.transform(test)).astype(np.float32)


def _image_encoder() -> Callable[[Any], NDArray[np.float32]]:
    from spinal.encoders import load_backbone

    return load_backbone("efficientnet-lite0@128").compute


def _sentence_encoder(folder: Path | None) -> Callable[[list[str]], NDArray[np.float32]]:
    """The mean of a transformer's outputs over the tokens of a text, scaled to length 1."""
    import onnxruntime
    from tokenizers import Tokenizer

    if folder is None:
        raise SystemExit("sentences need --text-encoder, a folder with an ONNX model")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "onnx/model.onnx"), options)

    def encode(texts: list[str]) -> NDArray[np.float32]:
        lengths = [len(text) for text in texts]
        order = np.argsort(lengths)  # texts of like length together: little padding
        vectors: list[NDArray] = []
        for start in range(0, len(texts), 16):
            tokens = tokenizer.encode_batch([texts[i] for i in order[start : start + 16]])
            ids = np.array([t.ids for t in tokens], np.int64)
            mask = np.array([t.attention_mask for t in tokens], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
            hidden = session.run(None, inputs)[0]
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            vectors.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        result = np.empty((len(texts), vectors[0].shape[1]), np.float32)
        result[order] = np.concatenate(vectors)
        return result

    return encode


def _save(path: Path, points: Points, kind: str) -> None:
    arrays = {
        name: value for name, value in vars(points).items() if value is not None
    }  # not asdict, which copies
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, kind=np.array(kind), **arrays)
    part.rename(path)
