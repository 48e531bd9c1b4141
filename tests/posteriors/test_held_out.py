"""Points that a network has not seen: held-out networks, and reserved points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spinal import ActiveLearner, Pool, networks
from spinal.circuits import Recipe
from spinal.classifiers.blend import fit_on_network
from spinal.classifiers.parts import Part
from spinal.errors import SpinalError
from spinal.networks import TrainSettings, predict_logits
from spinal.posteriors import SPN, FitContext, SPNEnsemble, View, held_out
from spinal.posteriors.held_out import Held, Reserve, load_held, save_held
from tests.posteriors.test_posteriors import image_view

TRAINING = TrainSettings(min_steps=3, max_steps=3)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The number of points and the start of every training of a held-out network, as it happens."""
    calls: list[tuple[int, str]] = []

    def train(network, points, labels, settings, **options):
        calls.append((len(points), options["start"]))
        return original(network, points, labels, settings, **options)

    original = held_out.train
    monkeypatch.setattr(held_out, "train", train)
    monkeypatch.setattr(held_out, "_HELD_OUT", 4)  # one network from 20 labels on, as with 200
    return calls


def fit(spn: SPN, n: int, **options) -> tuple[View, torch.Tensor]:
    view, y = image_view(n)
    spn.fit(view, y, FitContext(3, training=TRAINING, **options))
    return view, y


def test_trained_on_a_network_never_sees_what_it_held_out(seen: list[tuple[int, str]]) -> None:
    spn = SPN()
    fit(spn, 25, retrain="continue")
    first = spn._held[0]
    assert len(first.seen) == 20
    fit(spn, 45, retrain="continue", seed=3)
    second = spn._held[0]
    assert seen == [(20, "scratch"), (36, "continue")]
    assert set(first.unseen.tolist()) < set(second.unseen.tolist())
    assert set(first.seen.tolist()) < set(second.seen.tolist())
    assert len(second.unseen) == 9
    assert not set(second.seen.tolist()) & set(second.unseen.tolist())


def test_with_more_labels_fewer_networks_go_on(seen: list[tuple[int, str]]) -> None:
    spn = SPN()
    fit(spn, 9, retrain="continue")
    assert len(spn._held) == 3
    fit(spn, 18, retrain="continue")
    assert len(spn._held) == 2
    fit(spn, 25, retrain="continue")
    assert len(spn._held) == 1
    assert [start for _, start in seen] == ["scratch"] * 3 + ["continue"] * 3


def test_new_points_are_held_out_with_probability_a_fifth_whatever_their_class() -> None:
    held = Held(torch.arange(10), torch.zeros(0, dtype=torch.long), {})
    one = [held.hold_out(torch.tensor([10]), torch.tensor([3]), seed) for seed in range(500)]
    assert torch.cat(one).double().mean() == pytest.approx(0.2, abs=0.06)
    ten = torch.stack(
        [held.hold_out(10 + torch.arange(10), torch.arange(10), seed) for seed in range(500)]
    )
    assert (ten.sum(1) == 2).all()
    assert (ten.double().mean(0) - 0.2).abs().max() < 0.08


def test_a_network_with_more_classes_starts_from_scratch(seen: list[tuple[int, str]]) -> None:
    spn = SPN()
    fit(spn, 25, retrain="continue")
    held = spn._held[0]
    name = next(name for name in held.weights if name.startswith("head"))
    spn._held = [Held(held.seen, held.unseen, {**held.weights, name: torch.zeros(1)})]
    fit(spn, 25, retrain="continue")
    assert [start for _, start in seen] == ["scratch", "scratch"]


def test_held_out_networks_are_written_and_read(tmp_path: Path) -> None:
    held = [Held(torch.arange(3), torch.tensor([7, 9]), {"a.b": torch.ones(2), "c": torch.eye(2)})]
    save_held(tmp_path / "held", held)
    (read,) = load_held(tmp_path / "held")
    assert read.seen.tolist() == [0, 1, 2]
    assert read.unseen.tolist() == [7, 9]
    assert set(read.weights) == {"a.b", "c"}
    assert torch.equal(read.weights["c"], torch.eye(2))


def reserving(
    n: int, reserve: int, unlabelled: int = 0, method: str = "spn-cnn", **options
) -> ActiveLearner:
    """A learner that is told the labels of n images, in a pool with others."""
    view, y = image_view(n + unlabelled)
    pool = Pool(view.points[view.indices], ["a", "b", "c"])
    learner = ActiveLearner(
        pool, "lenet", method, posterior={"reserve": reserve}, training=TRAINING, **options
    )
    learner.tell(range(n), y[:n])
    return learner


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The points of every training of a network, as it happens."""
    calls: list[np.ndarray] = []

    def train(network, points, labels, settings, **options):
        calls.append(np.asarray(points))
        return original(network, points, labels, settings, **options)

    original = networks.train
    monkeypatch.setattr(networks, "train", train)
    monkeypatch.setattr(held_out, "train", train)
    return calls


def has(points: np.ndarray, point: np.ndarray) -> bool:
    return bool((points == point).all(axis=tuple(range(1, points.ndim))).any())


@pytest.mark.parametrize("retrain", ["scratch", "continue"])
def test_the_network_never_learns_from_reserved_points(
    retrain: str, learned: list[np.ndarray], tmp_path: Path
) -> None:
    learner = reserving(30, 6, unlabelled=10, retrain=retrain)
    learner.fit()
    assert isinstance(learner.posterior, SPN)
    assert learner.posterior._reserve.points is not None
    reserved = learner.pool.points[learner.posterior._reserve.points.numpy()]
    others = np.setdiff1d(learner.pool.labelled_indices, learner.posterior._reserve.points.numpy())
    said = learner.predict(learner.pool.points[others], by="network")
    assert learner.fitted_share() == np.mean(said == np.array(learner.pool.labels)[others])
    learner.save(tmp_path)
    again = ActiveLearner.load(tmp_path, Pool(learner.pool.points, ["a", "b", "c"]))
    for one in (learner, again):
        one.tell(range(30, 40), [0, 1] * 5)
        one.fit()
    left = 30 - len(reserved)
    assert 24 <= left < 30
    assert [len(points) for points in learned] == [left, left + 10, left + 10]  # no other network
    assert not any(has(points, point) for points in learned for point in reserved)
    np.testing.assert_array_equal(again.predict_proba(reserved), learner.predict_proba(reserved))


def test_an_ensemble_reserves_points_from_its_first_member(learned: list[np.ndarray]) -> None:
    learner = reserving(30, 6, method="spn-ensemble")
    learner.fit()
    assert isinstance(learner.posterior, SPNEnsemble)
    assert learner.posterior._reserve.points is not None
    left = 30 - len(learner.posterior._reserve.points)
    assert 24 <= left < 30
    assert [len(points) for points in learned] == [left]  # and no held-out network


def test_settings_are_chosen_on_reserved_points() -> None:
    """As `fit_on_network` chooses them, given the network and the points that it has not seen."""
    learner = reserving(40, 6)
    learner.fit()
    spn, view = learner.posterior, learner.view(learner.pool.points)
    assert isinstance(spn, SPN)
    assert spn.blend is not None
    assert spn._reserve.points is not None
    held = torch.isin(torch.arange(40), spn._reserve.points)
    y, z = torch.as_tensor(learner.pool.labels), view.features
    head = predict_logits(view.network, z[held]).log_softmax(1)
    expected = fit_on_network(z, y, 3, [Part(z, held)], head)
    assert spn.shares == expected.shares()
    assert spn.blend.gaussian.chosen is not None
    assert torch.equal(spn.blend.gaussian.chosen, expected.gaussian.chosen)


def test_at_most_a_fifth_of_every_class_is_reserved() -> None:
    """So a class with few labels is never kept from the network."""
    labels = np.array([0] * 60 + [1] * 9 + [2] * 4 + [3])
    for seed in range(20):
        held = Reserve(1000).among(np.arange(74), labels, seed)
        assert held is not None
        counts = np.bincount(labels[held.numpy()], minlength=4)
        assert (counts <= [12, 1, 0, 0]).all()
        assert counts[0] >= 8
    assert Reserve(5).among(np.arange(4), np.arange(4), 0) is None


def test_a_reserve_that_stayed_empty_is_not_drawn_after_loading(tmp_path: Path) -> None:
    reserve = Reserve(5)
    assert reserve.among(np.arange(4), np.arange(4), 0) is None
    reserve.save(tmp_path)
    loaded = Reserve(5)
    loaded.load(tmp_path)
    assert loaded.among(np.arange(100), np.arange(100) % 2, 0) is None


def test_vectors_and_trained_circuits_need_no_reserve() -> None:
    indices, labels = np.arange(15), np.arange(15) % 3
    dense = ActiveLearner(Pool(np.zeros((15, 4), np.float32), ["a", "b"]), posterior={"reserve": 3})
    assert dense.posterior.reserved(dense.network, indices, labels, 0) is None
    network = reserving(15, 3).network
    assert SPN(reserve=3).reserved(network, indices, labels, 0) is not None
    assert SPN(recipe=Recipe(), reserve=3).reserved(network, indices, labels, 0) is None


def test_a_negative_reserve_is_refused() -> None:
    with pytest.raises(SpinalError, match="reserve is a number of labels"):
        SPN(reserve=-1)
