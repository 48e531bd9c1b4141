"""Learners that learn from the pool, or from the labels alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spinal import ActiveLearner, Pool
from spinal.acquisition import Candidates, make_acquisition
from spinal.errors import SpinalError
from spinal.learner.draws import pool_to_learn_from
from spinal.learner.seeds import Purpose, round_seed
from spinal.networks import TrainSettings
from tests.classifiers.data import clouds

X, Y = (tensor.numpy() for tensor in clouds(600, 20, 3, apart=0.6))
TEST_X, TEST_Y = (tensor.numpy() for tensor in clouds(1000, 20, 3, apart=0.6, seed=1))


def fitted(n: int = 15, *, x: NDArray = X, **options) -> ActiveLearner:
    pool = Pool(x.astype(np.float32), ["a", "b", "c"])
    training = TrainSettings(min_steps=5, max_steps=5)
    learner = ActiveLearner(pool, "dense", training=training, **options)
    learner.tell(np.arange(n), Y[:n])
    learner.fit()
    return learner


def accuracy(learner: ActiveLearner, **options) -> float:
    return float((learner.predict(TEST_X.astype(np.float32), **options) == TEST_Y).mean())


def test_vectors_are_learnt_from_the_pool_unless_told_otherwise() -> None:
    by_pool, by_labels = fitted(), fitted(learn_from="labels")
    assert by_pool.posterior.learned_from == "pool"
    assert by_labels.posterior.learned_from == "labels"
    assert "by the pool as well" in repr(by_pool)
    assert "by the pool" not in repr(by_labels)
    assert accuracy(by_pool) > accuracy(by_labels) + 0.03
    assert accuracy(by_pool, by="spn") > accuracy(by_labels, by="spn") + 0.03


def test_a_pool_without_other_points_teaches_nothing() -> None:
    assert fitted(15, x=X[:15]).posterior.learned_from == "labels"


def test_other_values_are_refused() -> None:
    with pytest.raises(SpinalError, match="'pool' or 'labels', not 'both'"):
        ActiveLearner(Pool(X[:20], ["a", "b"]), "dense", learn_from="both")


@pytest.mark.parametrize("learn_from", ["pool", "labels", None])
def test_what_it_learnt_from_is_saved(learn_from: str | None, tmp_path: Path) -> None:
    learner = fitted(learn_from=learn_from)
    learner.save(tmp_path / "learner")
    again = ActiveLearner.load(tmp_path / "learner", Pool(X.astype(np.float32), ["a", "b", "c"]))
    assert again.settings == learner.settings
    assert again.posterior.learned_from == learner.posterior.learned_from
    points = TEST_X[:50].astype(np.float32)
    np.testing.assert_array_equal(again.predict_proba(points), learner.predict_proba(points))


def test_the_same_labels_teach_the_same_with_and_without_a_cache(tmp_path: Path) -> None:
    points = TEST_X[:50].astype(np.float32)
    expected = fitted().predict_proba(points)
    for _ in range(2):  # the first writes, the second reads
        np.testing.assert_array_equal(fitted(cache=tmp_path).predict_proba(points), expected)
    assert [path.name for path in tmp_path.iterdir()] == ["neighbours.npz"]
    (tmp_path / "neighbours.npz").write_bytes(b"damaged")
    np.testing.assert_array_equal(fitted(cache=tmp_path).predict_proba(points), expected)


def test_of_a_large_pool_the_same_points_are_taken_each_time() -> None:
    learner = fitted()
    first = pool_to_learn_from(learner.pool, 100)
    assert (np.diff(first[:100]) > 0).all()
    assert set(first) == {*first[:100], *range(15)}
    learner.tell([599], [0])
    learner.fit()
    assert set(pool_to_learn_from(learner.pool, 100)) == {*first, 599}
    # Points that are added to the pool later take few places.
    more = fitted(x=np.concatenate([X, X + 1]))
    assert np.isin(pool_to_learn_from(more.pool, 200), first).sum() > 60


def test_the_first_questions_cover_vectors() -> None:
    pool = Pool(X.astype(np.float32), ["a", "b", "c"])
    learner = ActiveLearner(pool, "dense", acquisition="auto", seed=3)
    first = learner.ask(10)
    generator = torch.Generator().manual_seed(round_seed(learner.seed, 0, Purpose.CHOICE))
    x = torch.from_numpy(X.astype(np.float32))
    candidates = Candidates(
        features=x, labelled_features=x[:0], ids=torch.arange(len(x), dtype=torch.int64)
    )
    expected = make_acquisition("max-herding").select(candidates, 10, generator)
    np.testing.assert_array_equal(first, expected.numpy())
    # What waits for an answer is covered already.
    assert not np.isin(learner.ask(10), first).any()
    by_chance = ActiveLearner(Pool(X, ["a", "b", "c"]), "dense", acquisition="margin", seed=3)
    assert set(by_chance.ask(10)) != set(first)


def test_herding_is_the_same_in_any_units() -> None:
    units = np.geomspace(1e-3, 1e6, X.shape[1])
    plain, stretched = (
        ActiveLearner(Pool(x.astype(np.float32), ["a", "b", "c"]), "dense", acquisition="auto")
        for x in (X / X.std(0), X * units)
    )
    np.testing.assert_array_equal(plain.ask(5), stretched.ask(5))


def test_a_large_pool_teaches_the_same_whenever_the_learner_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spinal.posteriors.spn.POOL", 200)
    points = TEST_X[:50].astype(np.float32)
    learner = fitted(15)
    assert learner.posterior.learned_from == "pool"
    learner.tell(np.arange(15, 40), Y[15:40])
    learner.rounds = 0  # the same seed as a new one
    learner.fit()
    np.testing.assert_array_equal(learner.predict_proba(points), fitted(40).predict_proba(points))
