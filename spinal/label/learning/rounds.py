"""One round of the model: first questions, the fit, and its predictions for all images."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.acquisition import Candidates, make_acquisition
from spinal.classifiers import fit_gaussian, held_out_parts
from spinal.data import UNLABELLED, Points, Pool
from spinal.encoders import ImageEncoder, build_fine_tuned, build_from_scratch
from spinal.label.learning.audit import Accuracy, audit_probs, estimate_accuracy
from spinal.label.store.networks import parse_network
from spinal.label.store.settings import ProjectSettings
from spinal.learner import ActiveLearner, MultiLearner, PoolDryError
from spinal.networks import SLIM, TrainSettings, build_network, compute_features
from spinal.networks.network import derived_seed
from spinal.posteriors import View
from spinal.probabilities import entropy

#: Maximum number of candidates, drawn at random, for first questions and for later ones.
FIRST_CANDIDATES, CANDIDATES = 2_000, 20_000
#: Number of images reserved for the audit, drawn at random, that a complete network predicts.
RESERVED = 500
#: Share of all images, those with the lowest density, that is called new.
NEW = 0.05
FOLDS = 5
_BATCH = 8192
#: Stronger regularisation on pretrained features than on images. With 100 and 255 labels of
#: CIFAR-10, 5 % of them wrong, a circuit that is trained on the layer's features then gets 69 and
#: 73 % of 1,000 test images right (two seeds, EfficientNet-Lite0 at 128 px); with the settings for
#: images, 61 and 69 %. It is the best of eleven settings on the same test images, so the numbers
#: are somewhat too high.
DENSE = TrainSettings(learning_rate=4e-3, batch_size=32, weight_decay=0.3, label_smoothing=0.0)
INPUT_DROPOUT = 0.5
#: How complete networks are trained: pretrained ones with a lower learning rate.
SCRATCH = TrainSettings(augment="shift")
RESNET_SLIM = replace(SLIM, augment="shift")  # a mirror image may be of another class
FINE_TUNED = TrainSettings(augment="shift", learning_rate=3e-4, epochs=10, min_steps=100)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """N images that have features, with their current labels.

    Attributes:
        images: their numbers, ascending, ``[N]``.
        points: their features, ``[N, D]``.
        labels: classes, ``[N]``; -1 if there is none. Where an image can have several, ``[N, C]``:
            1 present, 0 absent, -1 unknown.
        reserved: which are reserved for the audit, a random sample, ``[N]``.
        open: which may be asked: neither labelled nor skipped, ``[N]``.
        pictures: the images themselves, uint8 ``[N, S, S, 3]``, if a network is trained on them;
            None for a dense layer on the features.
    """

    images: NDArray[np.int64]
    points: Points
    labels: NDArray[np.int64]
    reserved: NDArray[np.bool_]
    open: NDArray[np.bool_]
    pictures: Points | None = None

    @property
    def learnt(self) -> Points:
        """The input of the network: pictures or features."""
        return self.points if self.pictures is None else self.pictures

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Which images have a label, ``[N]``."""
        known = self.labels != UNLABELLED
        return known if known.ndim == 1 else known.any(1)

    @property
    def training(self) -> NDArray[np.int64]:
        """Rows with a label."""
        return np.flatnonzero(self.is_labelled)

    @property
    def audited(self) -> NDArray[np.int64]:
        """Rows with a label that belong to the audit."""
        return np.flatnonzero(self.reserved & self.is_labelled)

    @property
    def askable(self) -> NDArray[np.int64]:
        """Rows that the model may ask about."""
        return np.flatnonzero(~self.reserved & self.open)


@dataclass(frozen=True, eq=False)
class Round:
    """The result of a fit.

    Attributes:
        queue: numbers of images to ask, best first, each with the reason.
        trained_on: number of labels.
        images: numbers of the M images that were predicted, ascending, ``[M]``.
        probs: class probabilities of these, ``[M, C]``.
        log_density: log-densities of these, ``[M]``.
        seconds: time of the fit.
        shares: the weight of each classifier in ``probs``; None if there is only one.
        learned_from: ``labels``, or ``pool`` if the images without a label were used as well.
    """

    queue: list[tuple[int, str]]
    trained_on: int
    images: NDArray[np.int64]
    probs: NDArray[np.float32]
    log_density: NDArray[np.float32]
    seconds: float
    shares: dict[str, float] | None
    learned_from: str


@dataclass(frozen=True, eq=False)
class Audit:
    """The audit of a fit.

    Attributes:
        accuracy: the estimate for all images.
        images: numbers of the A images of the audit, ``[A]``.
        probs: class probabilities of these by models trained without them, ``[A, C]``.
    """

    accuracy: Accuracy
    images: NDArray[np.int64]
    probs: NDArray[np.float32]


def first_questions(snapshot: Snapshot, n: int, seed: int) -> list[tuple[int, str]]:
    """Questions before there is a model: images that cover the others (max-herding).

    At most `FIRST_CANDIDATES` images are considered.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = snapshot.askable
    drawn = torch.randperm(len(rows), generator=generator)[:FIRST_CANDIDATES].numpy()
    rows = np.sort(rows[drawn])
    labelled = snapshot.training
    candidates = Candidates(
        features=torch.from_numpy(snapshot.points[rows]),
        labelled_features=torch.from_numpy(snapshot.points[labelled]),
        ids=torch.from_numpy(rows),
    )
    positions = make_acquisition("max-herding").select(candidates, n, generator)
    return [(int(snapshot.images[row]), "coverage") for row in rows[positions.numpy()]]


def fit(
    snapshot: Snapshot,
    settings: ProjectSettings,
    round: int,
    n: int,
    keep: Path | None = None,
    encoder: ImageEncoder | None = None,
    on_step: Callable[[str, int, int], None] | None = None,
    cache: Path | None = None,
) -> Round:
    """Fit a learner to all labels; return ``n`` questions and its predictions.

    Args:
        snapshot: the images.
        settings: of the project.
        round: number of the round, which determines the random seed.
        n: number of questions.
        keep: folder to save the learner in.
        encoder: the encoder to fine-tune; not needed otherwise.
        on_step: see `spinal.learner.ActiveLearner.fit`.
        cache: see `spinal.learner.ActiveLearner`.
    """
    began = time.perf_counter()
    seed = derived_seed(settings.seed, round)
    labelled, askable = snapshot.training, snapshot.askable
    looked_at = np.arange(len(snapshot.images))
    if settings.whole_network is not None:
        # The whole network is expensive, so it predicts only some images.
        askable = _draw(askable, settings.whole_network.candidates, seed)
        reserved = _draw(np.flatnonzero(snapshot.reserved), RESERVED, seed)
        looked_at = np.union1d(np.union1d(labelled, reserved), askable)
    learner = _fit_learner(snapshot, settings, seed, labelled, askable, encoder, on_step, cache)
    seconds = time.perf_counter() - began
    indices = ask_up_to(learner, n)
    if keep is not None:
        learner.save(keep)
    probs, log_density = _assess(learner, snapshot.learnt, looked_at)
    shares = learner.posterior.shares
    return Round(
        with_reasons(snapshot.images[looked_at], np.searchsorted(looked_at, indices), log_density),
        len(labelled), snapshot.images[looked_at], probs, log_density, seconds,
        shares if shares is not None and len(shares) > 1 else None,
        learner.posterior.learned_from,
    )  # fmt: skip


def ask_up_to(learner: ActiveLearner | MultiLearner, n: int) -> NDArray[np.int64]:
    """At most ``n`` points to ask; empty if no point is left."""
    try:
        return learner.ask(n)
    except PoolDryError:
        return np.empty(0, np.int64)


def with_reasons(
    images: NDArray[np.int64], asked: NDArray[np.int64], log_density: NDArray
) -> list[tuple[int, str]]:
    """The questions of a round: ``new`` for images of lowest density, otherwise ``uncertain``.

    Args:
        images: numbers of the images that were predicted, ``[M]``.
        asked: which of them are asked, ``[n]``.
        log_density: of all of them, ``[M]``.
    """
    new = log_density[asked] <= np.quantile(log_density, NEW)
    reasons = np.where(new, "new", "uncertain")
    return list(zip(images[asked].tolist(), reasons.tolist(), strict=True))


def audit(
    snapshot: Snapshot,
    settings: ProjectSettings,
    number: int,
    result: Round,
    encoder: ImageEncoder | None = None,
    on_step: Callable[[str, int, int], None] | None = None,
) -> Audit | None:
    """Estimate the accuracy of a fit on all images, with learners that leave out audit answers.

    Args:
        snapshot: the images that were fitted to.
        settings: of the project.
        number: of the round.
        result: of the fit.
        encoder: see `fit`.
        on_step: see `fit`.

    Returns:
        The audit; None if there are not enough answers.
    """
    audited, seed = snapshot.audited, derived_seed(settings.seed, number)

    def predict_without(held: NDArray[np.int64]) -> NDArray[np.float32]:
        known = np.setdiff1d(snapshot.training, held)
        # Without a cache: it would hold this smaller pool in the next fit.
        learner = _fit_learner(
            snapshot, settings, seed, known, snapshot.askable, encoder, on_step, cache=None
        )
        return _assess(learner, snapshot.learnt, held)[0]

    probs = audit_probs(audited, result.trained_on, len(settings.classes), predict_without)
    if probs is None:
        return None
    rows = np.searchsorted(snapshot.images, result.images)
    others = snapshot.reserved[rows] & (snapshot.labels[rows] == UNLABELLED)
    is_correct = probs.argmax(1) == snapshot.labels[audited]
    accuracy = estimate_accuracy(is_correct, probs.max(1), result.probs[others].max(1))
    return Audit(accuracy, snapshot.images[audited], probs)


def _fit_learner(
    snapshot: Snapshot,
    settings: ProjectSettings,
    seed: int,
    labelled: NDArray[np.int64],
    askable: NDArray[np.int64],
    encoder: ImageEncoder | None,
    on_step: Callable[[str, int, int], None] | None,
    cache: Path | None,
) -> ActiveLearner:
    pool = Pool(snapshot.learnt, settings.classes, np.union1d(labelled, askable))
    learner = make_learner(pool, settings, seed, encoder, cache)
    learner.tell(labelled, snapshot.labels[labelled])
    learner.fit(on_step=on_step)
    return learner


def make_learner(
    pool: Pool,
    settings: ProjectSettings,
    seed: int,
    encoder: ImageEncoder | None = None,
    cache: Path | None = None,
) -> ActiveLearner:
    """The learner of a project, on features or on images; see `spinal.label.store.networks`."""
    name, whole, size = parse_network(settings.network)
    n_classes = len(settings.classes)
    acquisition = settings.acquisition
    if whole is None:
        if acquisition is None and settings.method == "spn-cnn":
            acquisition = "auto"  # covers the pool where the model is unsure
        shape, training = pool.points.shape[1:], DENSE
        network = build_network("dense", shape, n_classes, input_dropout=INPUT_DROPOUT, seed=seed)
    elif name == "fine-tuned":
        assert encoder is not None
        network, training = build_fine_tuned(encoder, n_classes, seed=seed), FINE_TUNED
    else:
        network = build_from_scratch(name, size, n_classes, seed=seed)
        training = RESNET_SLIM if name == "resnet-slim" else SCRATCH
    return ActiveLearner(
        pool, network, settings.method, acquisition, seed, cache=cache, candidates=CANDIDATES,
        training=training,
    )  # fmt: skip


def _draw(rows: NDArray[np.int64], n: int, seed: int) -> NDArray[np.int64]:
    """At most ``n`` of the rows, drawn at random, in order."""
    if len(rows) <= n:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, n, replace=False))


def check_labels(
    snapshot: Snapshot, n_classes: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Class probabilities of labelled images by models trained without their labels.

    The models are closed-form circuits on the features; see `spinal.classifiers.gaussian`. Classes
    with fewer than `FOLDS` labels are left out: too few labels would remain for the fit.

    Returns:
        Rows of the images, ``[M]``, and probabilities, ``[M, C]``.
    """
    rows = snapshot.training
    labels = torch.from_numpy(snapshot.labels[rows])
    counts = torch.bincount(labels, minlength=n_classes)
    if (counts >= FOLDS).sum() < 2:
        return rows[:0], np.empty((0, n_classes), np.float32)
    features = torch.from_numpy(snapshot.points[rows])
    parts = held_out_parts(features, labels, FOLDS, seed)
    _, held_log_probs = fit_gaussian(features, labels, n_classes, parts)
    probs = torch.empty_like(held_log_probs)
    probs[torch.cat([part.held.nonzero().flatten() for part in parts])] = held_log_probs.exp()
    enough = counts[labels] >= FOLDS
    return rows[enough.numpy()], probs[enough].float().numpy()


def _assess(
    learner: ActiveLearner, points: Points, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Class probabilities ``[M, C]`` and log-densities ``[M]`` of some points, in batches."""
    probs, density = [], []
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        view = View(
            learner.network, points, batch, compute_features(learner.network, points, batch)
        )
        log_probs_N_C = learner.posterior.predict(view)
        probs.append(log_probs_N_C.exp().numpy())
        if "log_density" in learner.posterior.provides:
            density.append(learner.posterior.log_density(view).numpy())
        else:  # without a density, confident points count as typical
            density.append(-entropy(log_probs_N_C).numpy())
    return np.concatenate(probs), np.concatenate(density).astype(np.float32)
