"""Advice: kappa and the forecast, against closed forms; and as a learner keeps it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from spinal.data import Pool
from spinal.learner import ActiveLearner, NotFittedError
from spinal.learner.advice import History, cohen_kappa, forecast
from spinal.networks import TrainSettings


def test_kappa_as_scikit_learn_has_it() -> None:
    random = np.random.default_rng(0)
    first = random.integers(4, size=200)
    second = np.where(random.random(200) < 0.7, first, random.integers(4, size=200))
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))
    assert cohen_kappa(first, first) == pytest.approx(1)
    assert cohen_kappa(np.zeros(5, np.int64), np.zeros(5, np.int64)) == 1


def successive_predictions(rate: float, points: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Models of which each changes a share ``rate * new / all`` of the last one's predictions."""
    random = np.random.default_rng(0)
    labels = np.arange(20, 201, 10)
    predictions = [random.integers(10, size=points)]
    for n in labels[1:]:
        changed = random.random(points) < rate * 10 / n
        predictions.append(np.where(changed, random.integers(10, size=points), predictions[-1]))
    return labels, np.array(predictions)


def test_forecast_where_changes_follow_a_law() -> None:
    labels, predictions = successive_predictions(0.2)
    found = forecast(labels, predictions)
    assert found is not None
    # Five more steps of .2 * 10 / n, where nine tenths of the drawn classes are new ones.
    stays = np.prod([1 - 0.2 * 10 / n for n in range(210, 251, 10)])
    expected = 0.9 * (1 - stays)
    assert found.changes == pytest.approx(expected, rel=0.25)
    assert found.low < expected < found.high
    assert (found.labels, found.more) == (200, 50)
    assert found.kappa == pytest.approx(1 - 0.2 * 10 / 200, abs=0.003)
    assert str(found) == (
        "another 50 labels would change about 4.1% of the predictions (3.3% to 5.2%)"
    )
    more = forecast(labels, predictions, more=200)
    assert more is not None
    assert more.changes > found.changes


def test_models_that_agree_in_all() -> None:
    found = forecast(np.array([10, 20, 30]), np.zeros((3, 400), np.int64))
    assert found is not None
    assert found.changes < 0.003
    assert found.kappa == 1
    assert forecast(np.array([10, 20]), np.zeros((2, 400), np.int64)) is None


def test_a_model_from_fewer_labels_replaces_later_ones(tmp_path: Path) -> None:
    history = History.begin(np.array([3, 4]))
    for n in (10, 20, 30, 20):  # the last after answers were taken back
        history = history.add(n, np.array([n, n]))
    history.save(tmp_path / "history.npz")
    again = History.load(tmp_path / "history.npz")
    assert again.labels.tolist() == [10, 20]
    assert again.predictions.tolist() == [[10, 10], [20, 20]]
    assert again.points.tolist() == [3, 4]


def test_a_learner_gives_advice_and_remembers(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    classes = random.integers(3, size=300)
    points = (4 * np.eye(8)[classes] + random.normal(size=(300, 8))).astype(np.float32)
    pool = Pool(points, ("a", "b", "c"))
    learner = ActiveLearner(
        pool, "dense", "logistic", training=TrainSettings(min_steps=5, max_steps=5)
    )
    with pytest.raises(NotFittedError):
        learner.advice()
    said = []
    for _ in range(4):
        asked = learner.ask(10)
        learner.tell(asked, classes[asked])
        learner.fit()
        said.append(learner.advice())
        assert learner.advice() == said[-1]  # asked twice, nothing changes
    assert said[:2] == [None, None]
    assert said[2] is not None
    assert said[3] is not None
    assert said[3].labels == 40
    assert 0 <= said[3].low <= said[3].changes <= said[3].high <= 1
    learner.save(tmp_path / "learner")
    again = ActiveLearner.load(tmp_path / "learner", Pool(points, ("a", "b", "c")))
    assert again.advice() == said[3]
