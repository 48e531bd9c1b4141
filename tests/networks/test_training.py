"""Training: it learns, by seed alone, from scratch or on, keeps the best, and copes with little."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from spinal.data import load_dataset
from spinal.networks import (
    PAPER_LENET,
    PAPER_VGG,
    TUNED,
    Network,
    NetworkError,
    TrainSettings,
    build_network,
    compute_features,
    dense,
    predict_logits,
    train,
    vgg,
)

QUICK = TrainSettings(min_steps=20, max_steps=20, batch_size=16)


def blobs(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes in ten dimensions, as feature vectors."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    centre = np.random.default_rng(7).normal(size=(3, 10))
    return (2 * centre[labels] + rng.normal(size=(n, 10))).astype(np.float32), labels


def accuracy(network: Network, points: np.ndarray, labels: np.ndarray) -> float:
    logits = predict_logits(network, compute_features(network, points))
    return float((logits.argmax(1).numpy() == labels).mean())


def weights(network: Network) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_dense_learns_blobs() -> None:
    network = dense((10,), 3)
    report = train(network, *blobs(), replace(TUNED, min_steps=100))
    assert np.mean(report.losses[-10:]) < 0.5 * report.losses[0]
    assert accuracy(network, *blobs(300, seed=1)) > 0.9
    assert not network.training


def test_arrays_that_cannot_be_written_to_are_trained_on_without_a_warning() -> None:
    points, labels = blobs()
    points.flags.writeable = False
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train(dense((10,), 3), points, labels, QUICK)
    finally:
        torch.set_warn_always(False)


def test_lenet_learns_digits() -> None:
    digits = load_dataset("digits")
    chosen = np.random.default_rng(0).permutation(len(digits.train_labels))[:300]
    network = build_network("lenet", digits.train_images.shape[1:], 10)
    train(network, digits.train_images[chosen], digits.train_labels[chosen])
    assert accuracy(network, digits.test_images, digits.test_labels) > 0.92


@pytest.mark.parametrize("augment", ["none", "shift-flip"])
def test_weights_depend_on_the_seed_alone_and_global_state_is_left_alone(augment: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 1), np.uint8)
    settings = replace(QUICK, augment=augment, max_steps=20)  # type: ignore[arg-type]
    found = []
    for built, seed in enumerate((3, 3, 4)):
        torch.rand(2)  # what others draw changes nothing
        before = torch.get_rng_state()
        network = build_network("vgg", (8, 8, 1), 3, width=0.1, seed=built)
        train(network, images, np.arange(30) % 3, settings, seed=seed)
        assert torch.equal(before, torch.get_rng_state())
        found.append(weights(network))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_scratch_forgets_and_continue_goes_on() -> None:
    network = dense((10,), 3)
    train(network, *blobs(), replace(TUNED, min_steps=100), seed=0)
    learnt = weights(network)
    still = replace(QUICK, learning_rate=0.0, schedule="constant")
    train(network, *blobs(), still, start="continue", seed=1)
    assert torch.equal(weights(network), learnt)
    again = train(network, *blobs(), QUICK, start="continue", seed=1)
    assert again.losses[0] < 0.5
    fresh = train(network, *blobs(), QUICK, start="scratch", seed=1)
    assert fresh.losses[0] > 0.8


def test_a_pretrained_network_starts_from_what_it_was_brought_with() -> None:
    source = dense((10,), 3)
    train(source, *blobs(), replace(TUNED, min_steps=100))
    network = Network(source.body, source.head, pretrained=True)
    brought = weights(network)
    train(network, *blobs(), QUICK)
    assert not torch.equal(weights(network), brought)
    network.restart(0)
    assert torch.equal(weights(network), brought)


def test_the_best_on_validation_is_kept_and_patience_stops() -> None:
    points, labels = blobs(12)
    rng = np.random.default_rng(0)
    noisy = rng.permutation(labels)  # nothing to learn: soon it only gets worse
    held = blobs(60, seed=3)
    settings = TrainSettings(
        min_steps=400, max_steps=400, learning_rate=0.01, schedule="constant", patience=4,
        check_every=5,
    )  # fmt: skip
    network = dense((10,), 3)
    report = train(network, points, noisy, settings, validation=held)
    assert report.stopped_early
    assert len(report.losses) < 400
    best = min(report.validation_losses)
    assert report.best_step == 5 * (1 + int(np.argmin(report.validation_losses)))
    assert report.validation_losses[-1] > best
    logits = predict_logits(network, compute_features(network, held[0]))
    loss = torch.nn.functional.cross_entropy(logits, torch.as_tensor(held[1]))
    assert float(loss) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(("n", "size"), [(1, 32), (3, 1), (5, 4)])
def test_batch_norm_copes_with_few_points(n: int, size: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, (n, 4, 4, 1), np.uint8)
    network = vgg((4, 4, 1), 3, width=0.05)
    report = train(network, images, np.zeros(n), replace(QUICK, batch_size=size))
    assert np.isfinite(report.losses).all()
    assert weights(network).isfinite().all()


def test_classes_without_labels_are_fine() -> None:
    points, labels = blobs()
    known = labels != 1
    network = dense((10,), 3)
    train(network, points[known], labels[known], replace(TUNED, min_steps=100))
    assert accuracy(network, points[known], labels[known]) > 0.9


def test_standardisation_is_done_once() -> None:
    network = dense((10,), 3)
    points, labels = blobs()
    train(network, points, labels, QUICK)
    mean = network.preprocess.mean.clone()
    np.testing.assert_allclose(mean, points.mean(0), rtol=1e-4)
    train(network, points[:5] + 10, labels[:5], QUICK)
    assert torch.equal(network.preprocess.mean, mean)


def test_steps_grow_with_the_labels_within_bounds() -> None:
    settings = TrainSettings(batch_size=32, epochs=10, min_steps=50, max_steps=500)
    assert [settings.steps(n) for n in (1, 20, 320, 1000, 10**6)] == [50, 50, 100, 313, 500]
    assert PAPER_LENET.steps(1000) == 834  # 100 epochs of 1,000 points in batches of 120
    assert PAPER_VGG.steps(5000) == 250 * 50


def test_every_point_is_seen_equally_often() -> None:
    from spinal.networks.training import _batches

    stream = _batches(7, 3, torch.Generator().manual_seed(0))
    rows = torch.cat([next(stream) for _ in range(7)])
    assert rows.bincount().tolist() == [3] * 7


def test_progress_is_told_step_by_step() -> None:
    seen: list[tuple[int, int]] = []
    report = train(
        dense((10,), 3),
        *blobs(),
        QUICK,
        on_step=lambda step, steps, loss: seen.append((step, steps)),
    )
    assert seen == [(step, 20) for step in range(1, 21)]
    assert len(report.losses) == 20


def test_what_cannot_be_trained_on_is_refused() -> None:
    points, labels = blobs()
    network = dense((10,), 3)
    with pytest.raises(NetworkError, match="labels from 0 to 5, but the network has 3 classes"):
        train(network, points, labels + 3 * (labels == 2), QUICK)
    with pytest.raises(NetworkError, match="60 points, labels of shape"):
        train(network, points, labels[:-1], QUICK)
    with pytest.raises(NetworkError, match="at least one: 0 points"):
        train(network, points[:0], labels[:0], QUICK)
    with pytest.raises(NetworkError, match="'scratch' or 'continue'"):
        train(network, points, labels, QUICK, start="fresh")  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="optimiser 'adam': take one of adamw, sgd"):
        TrainSettings(optimiser="adam")  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="batch_size"):
        TrainSettings(batch_size=0)
    for weight in network.parameters():
        weight.requires_grad_(False)
    with pytest.raises(NetworkError, match="no weights to train"):
        train(network, points, labels, QUICK)
