"""Everything that people have becomes points of a pool; what cannot is refused with the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from spinal import ActiveLearner, Pool
from spinal.data import Points, as_points
from spinal.data.texts import TfidfSVD
from spinal.errors import DataError
from spinal.networks import TrainSettings

N = 40
LABELS = np.arange(N) % 2
VECTORS = np.random.default_rng(0).normal(size=(N, 5)) + 4 * LABELS[:, None]
IMAGES = np.random.default_rng(1).integers(0, 60, (N, 8, 8, 3)) + 150 * LABELS[:, None, None, None]
IMAGES = IMAGES.astype(np.uint8)
TEXTS = [f"{'ripe apples and pears' if y else 'a hammer, a saw'} number {i}"
         for i, y in enumerate(LABELS)]  # fmt: skip
TABLE = pd.DataFrame(
    {"length": VECTORS[:, 0], "colour": np.where(LABELS, "red", "grey"), "old": LABELS == 0}
)


class Rows:
    """A dataset of Hugging Face, as far as it is used: rows are mappings."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns
        self.column_names, self.features = list(columns), dict(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, i: int | str) -> Any:
        if isinstance(i, str):
            return list(self._columns[i])
        return {name: values[i] for name, values in self._columns.items()}


def memory_map(folder: Path) -> np.ndarray:
    array = np.lib.format.open_memmap(folder / "x.npy", mode="w+", shape=VECTORS.shape)
    array[:] = VECTORS
    return array


def files(folder: Path) -> list[Path]:
    paths = [folder / f"{i}.png" for i in range(N)]
    for path, image in zip(paths, IMAGES, strict=True):
        Image.fromarray(image).save(path)
    return paths


KINDS: dict[str, Callable[[Path], Any]] = {
    "array": lambda _: VECTORS,
    "memory map": memory_map,
    "nested lists": lambda _: VECTORS.tolist(),
    "tensor": lambda _: torch.from_numpy(VECTORS).requires_grad_(),
    "images": lambda _: IMAGES,
    "tensor of images": lambda _: torch.from_numpy(IMAGES),
    "torch dataset": lambda _: TensorDataset(torch.tensor(VECTORS), torch.tensor(LABELS)),
    "data loader": lambda _: DataLoader(TensorDataset(torch.tensor(VECTORS)), shuffle=True),
    "sparse": lambda _: scipy.sparse.coo_array(VECTORS),
    "paths": files,
    "names of files": lambda folder: [str(path) for path in files(folder)],
    "PIL images": lambda _: [Image.fromarray(image) for image in IMAGES],
    "strings": lambda _: TEXTS,
    "array of strings": lambda _: np.array(TEXTS),
    "series of strings": lambda _: pd.Series(TEXTS),
    "table": lambda _: TABLE,
    "rows with a text": lambda _: Rows(text=TEXTS, label=LABELS.tolist()),
    "rows with an image": lambda _: Rows(
        image=[Image.fromarray(image) for image in IMAGES], label=LABELS.tolist()
    ),
    "rows with a vector": lambda _: Rows(embedding=VECTORS.tolist(), label=LABELS.tolist()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_from_each_kind_of_input_to_a_prediction(kind: str, tmp_path: Path) -> None:
    data = KINDS[kind](tmp_path)
    pool = Pool(data, ("tool", "fruit"))
    learner = ActiveLearner(
        pool,
        ("dense", {"width": 0.125}),
        "logistic",
        training=TrainSettings(min_steps=5, max_steps=5),
        device="cpu",
    )
    learner.tell(np.arange(12), LABELS[:12])
    learner.fit()
    assert (learner.predict(data) == LABELS).mean() > 0.9
    assert len(learner.ask(3)) == 3


def test_all_ways_to_the_same_vectors_agree(tmp_path: Path) -> None:
    at = np.array([7, 0, 39, 0])
    for kind in ("array", "memory map", "nested lists", "tensor", "torch dataset", "data loader",
                 "sparse", "rows with a vector"):  # fmt: skip
        points = as_points(KINDS[kind](tmp_path))
        assert isinstance(points, Points)
        assert points.shape == (N, 5)
        assert points[at].dtype == np.float32
        np.testing.assert_allclose(points[at], VECTORS[at], rtol=1e-6)
        assert len(points[at[:0]]) == 0
    for kind in ("images", "tensor of images", "PIL images", "rows with an image"):
        points = as_points(KINDS[kind](tmp_path))
        assert points.shape == IMAGES.shape
        np.testing.assert_array_equal(points[at], IMAGES[at])


def test_new_texts_and_rows_are_encoded_as_the_pool_is() -> None:
    pool = Pool(TEXTS, 2)
    np.testing.assert_allclose(
        pool.points_like(TEXTS[:3])[np.arange(3)], pool.points[np.arange(3)], atol=1e-6
    )
    for again in (tuple(TEXTS[:3]), np.array(TEXTS[:3]), pd.Series(TEXTS[:3]), Rows(t=TEXTS[:3])):
        np.testing.assert_array_equal(
            pool.points_like(again)[np.arange(3)], pool.points_like(TEXTS[:3])[np.arange(3)]
        )
    assert pool.points_like(["nothing known"])[np.arange(1)].shape == (1, pool.points.shape[1])
    table = Pool(TABLE, 2)
    other = TABLE[["old", "colour", "length"]].iloc[[5, 1]]
    np.testing.assert_array_equal(
        table.points_like(other)[np.arange(2)], table.points[np.array([5, 1])]
    )
    unseen = TABLE.iloc[:1].assign(colour="green")
    assert np.isnan(table.points_like(unseen)[np.arange(1)]).sum() == 2


def test_vectors_of_texts_keep_the_angles_between_them() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    whole = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(TEXTS).toarray()
    vectors = TfidfSVD(TEXTS, components=1000)(TEXTS)  # as many as there are
    np.testing.assert_allclose(vectors @ vectors.T, whole @ whole.T, atol=1e-5)


class Stream(IterableDataset):
    def __iter__(self):
        yield from VECTORS


WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "channels first": (
        lambda _: np.zeros((9, 3, 32, 32), np.uint8),
        r"\(9, 3, 32, 32\) have their channels first.*images.transpose\(0, 2, 3, 1\)",
    ),
    "tensor with channels first": (
        lambda _: torch.zeros(9, 1, 28, 28),
        r"\(255 \* images.permute\(0, 2, 3, 1\)\).round\(\).byte\(\)",
    ),
    "dataset with channels first": (
        lambda _: TensorDataset(torch.zeros(9, 3, 8, 8), torch.zeros(9)),
        r"\(255 \* x\).round\(\).byte\(\).permute\(1, 2, 0\)",
    ),
    "float images": (lambda _: torch.zeros(9, 8, 8, 3), "give uint8"),
    "one text": (lambda _: "a text", "'a text' alone: give a list"),
    "a folder": (lambda folder: folder, "load_folder"),
    "all splits": (lambda _: {"train": VECTORS, "test": VECTORS}, "keys 'train', 'test'"),
    "a stream": (lambda _: Stream(), "a Stream, whose points have no positions"),
    "a generator": (lambda _: (row for row in VECTORS), "a generator, whose"),
    "nothing": (lambda _: [], "empty list"),
    "a mixture": (lambda _: ["a", 1.0], "a list of float, str"),
    "rows of different lengths": (lambda _: [[1.0], [1.0, 2.0]], "cannot be an array"),
    "a lost file": (lambda folder: [folder / "a.png"], "1 of 1 images.*No such file.*ImageFiles"),
    "stop words only": (lambda _: ["the", "and"], "without words"),
    "a column of texts": (
        lambda _: pd.DataFrame({"body": [f"text {i}" for i in range(200)]}),
        r"'body' has 200 different values.*table\['body'\]",
    ),
    "a column of numbers": (lambda _: TABLE["length"], "to_frame"),
    "rows with two texts": (
        lambda _: Rows(title=TEXTS, body=TEXTS),
        r"'title' and 'body': choose one column, such as dataset\['title'\]",
    ),
    "rows of numbers": (lambda _: Rows(a=[1], b=[2]), "none of 'a', 'b'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_kind_is_told_what_to_write(kind: str, tmp_path: Path) -> None:
    make, message = WRONG[kind]
    with pytest.raises(DataError, match=message):
        Pool(make(tmp_path), 2)


def test_images_of_different_sizes_are_named() -> None:
    points = as_points([Image.new("L", (8, 8)), Image.new("L", (9, 8))])
    assert points.shape == (2, 8, 8, 1)
    with pytest.raises(DataError, match=r"item 1 .*image.resize"):
        points[np.arange(2)]


def test_texts_for_a_pool_of_something_else_are_refused() -> None:
    with pytest.raises(DataError, match="texts, but the pool holds other points"):
        Pool(VECTORS, 2).points_like(TEXTS)
    with pytest.raises(DataError, match="a table, but the pool holds texts"):
        Pool(TEXTS, 2).points_like(TABLE)
    with pytest.raises(DataError, match="texts, but the pool holds a table"):
        Pool(TABLE, 2).points_like(TEXTS)
    with pytest.raises(DataError, match="without the columns old of the pool"):
        Pool(TABLE, 2).points_like(TABLE[["length", "colour"]])


@pytest.mark.parametrize("method", ["spn-cnn", "logistic", "deterministic"])
def test_missing_features_are_refused_where_they_cannot_be_left_out(method: str) -> None:
    vectors = VECTORS.copy()
    vectors[3, 1] = np.nan
    learner = ActiveLearner(Pool(vectors, 2), method=method)
    learner.tell(np.arange(12), LABELS[:12])
    with pytest.raises(DataError, match=r"1 of 12 points have missing.*SPNClassifier"):
        learner.fit()


def test_missing_features_are_left_out_where_they_can_be() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    from spinal import SPNClassifier

    vectors = np.where(np.random.default_rng(0).random(VECTORS.shape) < 0.3, np.nan, VECTORS)
    for method in (
        SPNClassifier(structure="random", steps=30),
        HistGradientBoostingClassifier(min_samples_leaf=2),
    ):
        learner = ActiveLearner(
            Pool(vectors, 2), method=method, training=TrainSettings(min_steps=5, max_steps=5)
        )
        learner.tell(np.arange(30), LABELS[:30])
        learner.fit()
        assert (learner.predict(vectors[30:]) == LABELS[30:]).mean() >= 0.8
        learner.ask(2)
