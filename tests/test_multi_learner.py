"""The learner for independent classes: ask and tell, on vectors and texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinal.errors import DataError, FileFormatError, LabelError, SpinalError
from spinal.learner import MultiLearner, NotFittedError, PoolDryError

CLASSES = ("a", "b", "c")


def make_points(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    return x, x[:, :3] > [0.0, 0.5, 1.0]


def test_it_learns_what_it_is_told() -> None:
    x, y = make_points()
    learner = MultiLearner(x, CLASSES)
    for n in (20, 40):
        rows = learner.ask(n)
        learner.tell(rows, y[rows])
        learner.fit()
    assert len(learner.labelled_indices) == 60
    probs = learner.predict_proba(x)
    assert probs.shape == (150, 3)
    assert (learner.predict(x) == y).mean() > 0.9
    np.testing.assert_allclose(learner.assess(x, np.array([3, 1]))[0], probs[[3, 1]], rtol=1e-5)
    asked = learner.ask(1000)
    assert sorted([*asked, *learner.labelled_indices]) == list(range(150))
    with pytest.raises(PoolDryError):
        learner.ask()


def test_the_same_seed_asks_the_same() -> None:
    x, y = make_points()

    def run(seed: int) -> list[int]:
        learner = MultiLearner(x, CLASSES, seed=seed, learn_from="labels")
        rows = learner.ask(15)
        learner.tell(rows, y[rows])
        learner.fit()
        return [*rows.tolist(), *learner.ask(5).tolist()]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_members_alone_are_asked() -> None:
    x, _ = make_points(30)
    learner = MultiLearner(x, CLASSES, members=np.arange(10, 20))
    assert set(learner.ask(30)) == set(range(10, 20))


def test_saved_and_read_again(tmp_path: Path) -> None:
    x, y = make_points(60)
    learner = MultiLearner(x, CLASSES, seed=3)
    rows = learner.ask(20)
    learner.tell(rows, y[rows])
    learner.fit()
    learner.save(tmp_path / "model")
    again = MultiLearner.load(tmp_path / "model", x)
    assert np.array_equal(again.predict_proba(x), learner.predict_proba(x))
    assert again.ask(5).tolist() == learner.ask(5).tolist()
    with pytest.raises(FileFormatError, match="60 points"):
        MultiLearner.load(tmp_path / "model", x[:50])
    (tmp_path / "model" / "multi.json").write_text("[]")
    with pytest.raises(FileFormatError):
        MultiLearner.load(tmp_path / "model", x)


def test_texts_with_several_topics() -> None:
    topics = {"sport": "goal team match", "food": "soup bread oven"}
    y = np.random.default_rng(0).random((80, 2)) < 0.5
    texts = [
        " ".join(["today", "people", *(topics[t] for t, on in zip(topics, row, strict=True) if on)])
        for row in y
    ]
    learner = MultiLearner(texts, tuple(topics), learn_from="labels")
    rows = learner.ask(20)
    learner.tell(rows, y[rows])
    learner.fit()
    assert (learner.predict(texts) == y).mean() > 0.9


def test_bad_input_is_refused() -> None:
    x, y = make_points(20)
    learner = MultiLearner(x, CLASSES)
    with pytest.raises(NotFittedError):
        learner.predict(x)
    with pytest.raises(NotFittedError):
        learner.fit()
    with pytest.raises(LabelError, match="truth value for each of 3"):
        learner.tell([0, 1], [True, False])
    with pytest.raises(LabelError, match="from 0 to 19"):
        learner.tell([20], y[:1])
    with pytest.raises(LabelError, match="truth values"):
        learner.tell([0], [[0, 1, 2]])
    with pytest.raises(DataError, match="all different"):
        MultiLearner(x, ["a", "a"])
    with pytest.raises(DataError, match="vectors"):
        MultiLearner(np.zeros((3, 8, 8), np.uint8), CLASSES)
    with pytest.raises(SpinalError, match="learn_from"):
        MultiLearner(x, CLASSES, learn_from="all")
