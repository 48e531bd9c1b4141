"""Networks that learn from pseudo-labels of the pool."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from spinal import ActiveLearner, Pool
from spinal.learner.pseudo_labels import LabelledPool
from spinal.networks import (
    NetworkError,
    PseudoLabels,
    TrainSettings,
    build_network,
    compute_features,
    train,
)
from spinal.networks.network import derived_seed
from tests.classifiers.data import clouds

X, Y = (tensor.float().numpy() for tensor in clouds(400, 20, 3, apart=1.0))
Y = Y.astype(np.int64)
TEST_X, TEST_Y = (tensor.numpy() for tensor in clouds(1000, 20, 3, apart=1.0, seed=1))


def test_the_loss_of_a_batch_of_pseudo_labels_counts_half() -> None:
    network = build_network("dense", (20,), 3, seed=0)
    network.preprocess.fit(X)
    settings = TrainSettings(min_steps=1, max_steps=1, dropout=0.0, label_smoothing=0.0)
    guess = torch.tensor([[0.2, 0.3, 0.5]])
    pseudo = PseudoLabels(X[1:2], guess, torch.ones(1))
    report = train(network, X[:1], Y[:1], settings, pseudo=pseudo, seed=5)
    network.restart(derived_seed(5, 0))
    logits = network(network.to_input(torch.from_numpy(X[:2])))
    expected = cross_entropy(logits[:1], torch.from_numpy(Y[:1]))
    expected = expected - 0.5 * (guess * logits[1:].log_softmax(1)).sum()
    assert report.losses == [pytest.approx(float(expected.detach()), rel=1e-5)]


def test_points_without_weight_are_never_learnt_from() -> None:
    settings = TrainSettings(min_steps=20, max_steps=20)
    weights = []
    for wrong in (0.0, 1e6):
        network = build_network("dense", (20,), 3, seed=0)
        network.preprocess.fit(X)
        points = X[10:12] + np.array([[0.0], [wrong]], np.float32)
        pseudo = PseudoLabels(points, torch.eye(3)[:2], torch.tensor([1.0, 0.0]))
        train(network, X[:10], Y[:10], settings, pseudo=pseudo)
        weights.append(next(iter(network.parameters())).detach())
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_targets_have_to_fit_the_points() -> None:
    network = build_network("dense", (20,), 3)
    pseudo = PseudoLabels(X[:2], torch.eye(3), torch.ones(2))
    with pytest.raises(NetworkError, match="2 points, 3 targets, 2 weights"):
        train(network, X[:10], Y[:10], pseudo=pseudo)


def test_only_points_without_labels_get_pseudo_labels() -> None:
    network = build_network("dense", (20,), 3)
    train(network, X[:30], Y[:30])
    known = torch.arange(30) < 20
    pool = LabelledPool(X, torch.arange(30), torch.from_numpy(Y[:30]), 3)
    pseudo = pool.guess(network, known)
    assert not (pseudo.points[:, None] == X[None, :30]).all(2).any()
    assert len(pseudo.points) > 300
    assert (pseudo.targets.argmax(1).numpy() == Y[30:][-len(pseudo.points) :]).mean() > 0.7
    # The labels of points that are held out change nothing.
    other = LabelledPool(X, torch.arange(30), torch.where(known, pool.labels, 0), 3)
    torch.testing.assert_close(other.guess(network, known).targets, pseudo.targets)


def fitted(labels: np.ndarray, **options) -> ActiveLearner:
    pool = Pool(X, ["a", "b", "c"])
    training = TrainSettings(min_steps=60, max_steps=60)
    learner = ActiveLearner(pool, "dense", "deterministic", training=training, **options)
    learner.tell(np.arange(len(labels)), labels)
    learner.fit()
    return learner


def test_a_network_learns_from_the_pool_if_it_is_told_to(tmp_path: Path) -> None:
    by_labels, by_pool = fitted(Y[:15]), fitted(Y[:15], learn_from="pool")
    assert (by_labels.learned_from, by_pool.learned_from) == ("labels", "pool")
    right = [
        (learner.predict(TEST_X.astype(np.float32)) == TEST_Y).mean()
        for learner in (by_labels, by_pool)
    ]
    assert right[1] > right[0] + 0.02
    by_pool.save(tmp_path / "learner")
    again = ActiveLearner.load(tmp_path / "learner", Pool(X, ["a", "b", "c"]))
    assert again.learned_from == "pool"


def test_it_does_not_where_held_out_labels_are_against_it() -> None:
    noise = np.random.default_rng(0).permutation(Y[:40])  # no point tells its class
    by_labels, by_pool = fitted(noise), fitted(noise, learn_from="pool")
    assert by_pool.learned_from == "labels"
    np.testing.assert_array_equal(by_pool.predict_proba(X), by_labels.predict_proba(X))


def test_the_spn_is_fitted_beside_networks_that_were_taught_as_well() -> None:
    images = np.clip(128 + 40 * X[:, :16].reshape(-1, 4, 4, 1).repeat(3, 1).repeat(3, 2), 0, 255)
    pool = Pool(images.astype(np.uint8), ["a", "b", "c"])
    training = TrainSettings(min_steps=10, max_steps=10)
    network = ("lenet", {"width": 0.2})
    learner = ActiveLearner(pool, network, training=training, learn_from="pool", seed=1)
    learner.tell(np.arange(30), Y[:30])
    steps = []
    learner.fit(on_step=lambda part, step, of: steps.append(part))
    # The network, three without a fifth of the labels, twice three and once two with the pool.
    taught = learner.learned_from == "pool"
    assert steps.count("network") == 10 * (1 + 3 + 6 + 2 * taught)
    assert "posterior" not in steps  # it trains no further networks
    features = compute_features(learner.network, pool.points)
    assert learner.predict_proba(pool.points).shape == (len(features), 3)
