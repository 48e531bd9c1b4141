"""One round of the model: which questions come first, and what a fit says about all images."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinal.acquisition import Candidates, make_acquisition
from spinal.data import UNLABELLED, Points, Pool, iter_batches
from spinal.label.project import ProjectSettings
from spinal.learner import ActiveLearner, PoolDryError
from spinal.networks.network import derived_seed

#: Images, drawn at random, among which first questions, and later ones, are looked for.
FIRST_CANDIDATES, CANDIDATES = 2_000, 20_000
#: Of all images, the share of the least usual that is called new.
NEW = 0.05
FOLDS = 5
_BATCH = 8192


@dataclass(frozen=True, eq=False)
class Snapshot:
    """N images that have features, and what is known of them now.

    Attributes:
        images: their numbers, ascending, ``[N]``.
        points: their features, ``[N, D]``.
        labels: classes, ``[N]``; -1 where there is none.
        holdout: which are kept for testing, ``[N]``.
        open: which may be asked: no label, no skip, ``[N]``.
    """

    images: NDArray[np.int64]
    points: Points
    labels: NDArray[np.int64]
    holdout: NDArray[np.bool_]
    open: NDArray[np.bool_]

    @property
    def training(self) -> NDArray[np.int64]:
        """Rows that are learnt from."""
        return np.flatnonzero(~self.holdout & (self.labels != UNLABELLED))

    @property
    def testing(self) -> NDArray[np.int64]:
        """Rows that are tested on."""
        return np.flatnonzero(self.holdout & (self.labels != UNLABELLED))

    @property
    def askable(self) -> NDArray[np.int64]:
        """Rows that the model may ask."""
        return np.flatnonzero(~self.holdout & self.open)


@dataclass(frozen=True, eq=False)
class Round:
    """What a fit came to.

    Attributes:
        queue: numbers of images to be asked, best first, and why.
        trained_on: number of labels.
        tested_on: number of labels kept for testing,
        correct: and how many of them were predicted rightly.
        probs: class probabilities of all images, ``[N, C]``.
        log_density: how usual they are, ``[N]``.
        seconds: of the fit.
    """

    queue: list[tuple[int, str]]
    trained_on: int
    tested_on: int
    correct: int
    probs: NDArray[np.float32]
    log_density: NDArray[np.float32]
    seconds: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval of the accuracy, 95 %; None without a test."""
        return wilson(self.correct, self.tested_on) if self.tested_on else None


def wilson(correct: int, n: int) -> tuple[float, float]:
    r"""Wilson's 95 % interval of a share.

    :math:`\frac{1}{1 + z^2/n}\left(\hat p + \frac{z^2}{2n} \pm z \sqrt{\frac{\hat p (1 - \hat p)}
    {n} + \frac{z^2}{4 n^2}}\right)`, which stays inside [0, 1] and is fair for few answers.
    """
    found = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    return float(found.low), float(found.high)


def first_questions(snapshot: Snapshot, n: int, seed: int) -> list[tuple[int, str]]:
    """Questions before there is a model: typical images of groups that have no label (TypiClust).

    For many images, groups are found among `FIRST_CANDIDATES` of them.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = snapshot.askable
    drawn = torch.randperm(len(rows), generator=generator)[:FIRST_CANDIDATES].numpy()
    rows = np.sort(rows[drawn])
    known = snapshot.training
    candidates = Candidates(
        features=_normalised(snapshot.points[rows]),
        labelled_features=_normalised(snapshot.points[known]),
        ids=torch.from_numpy(rows),
    )
    picks = make_acquisition("typiclust").select(candidates, n, generator)
    return [(int(snapshot.images[row]), "coverage") for row in rows[picks.numpy()]]


def fit(
    snapshot: Snapshot, settings: ProjectSettings, round: int, n: int, keep: Path | None = None
) -> Round:
    """Fit a learner to the training labels, ask it for ``n`` questions, and what it believes.

    Args:
        snapshot: the images.
        settings: of the project.
        round: its number: chance differs from round to round.
        n: how many questions.
        keep: folder to keep the learner in.
    """
    began = time.perf_counter()
    rows = snapshot.training
    pool = Pool(snapshot.points, settings.classes, np.union1d(rows, snapshot.askable))
    learner = ActiveLearner(
        pool, "dense", settings.method, settings.acquisition,
        derived_seed(settings.seed, round), candidates=CANDIDATES,
    )  # fmt: skip
    learner.tell(rows, snapshot.labels[rows])
    learner.fit()
    seconds = time.perf_counter() - began
    try:
        picks = learner.ask(n)
    except PoolDryError:
        picks = np.empty(0, np.int64)
    if keep is not None:
        learner.save(keep)
    probs, log_density = _assess(learner, snapshot.points)
    rare = np.quantile(log_density, NEW)
    tested = snapshot.testing
    right = probs[tested].argmax(1) == snapshot.labels[tested]
    reasons = np.where(log_density[picks] <= rare, "new", "uncertain")
    return Round(
        list(zip(snapshot.images[picks].tolist(), reasons.tolist(), strict=True)),
        len(rows), len(tested), int(right.sum()), probs, log_density, seconds,
    )  # fmt: skip


def check_labels(
    snapshot: Snapshot, classes: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Class probabilities of labelled images by models that were not told their labels.

    Cross-validated logistic regression on the features, on all training labels of classes that
    have at least `FOLDS`.

    Returns:
        Rows of the images, ``[M]``, and probabilities, ``[M, C]``.
    """
    rows = snapshot.training
    counts = np.bincount(snapshot.labels[rows], minlength=classes)
    rows = rows[counts[snapshot.labels[rows]] >= FOLDS]
    labels = snapshot.labels[rows]
    if len(np.unique(labels)) < 2:
        return rows[:0], np.empty((0, classes), np.float32)
    # The squared length of a standardised vector is about D.
    strength = 10 / snapshot.points.shape[1]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=300))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    found = cross_val_predict(
        model, snapshot.points[rows], labels, cv=folds, method="predict_proba"
    )
    probs = np.zeros((len(rows), classes), np.float32)
    probs[:, np.unique(labels)] = found
    return rows, probs


def _assess(
    learner: ActiveLearner, points: Points
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Class probabilities ``[N, C]`` and log-densities ``[N]`` of all points, in batches."""
    probs, density = [], []
    for batch in iter_batches(points, np.arange(len(points)), _BATCH):
        probs.append(learner.predict_proba(batch))
        scores = learner.score(batch)
        # Without a density, sure points count as usual.
        density.append(scores.get("log_density", -scores["uncertainty"]))
    return np.concatenate(probs), np.concatenate(density).astype(np.float32)


def _normalised(features: NDArray[np.float32]) -> torch.Tensor:
    """Features of length 1, as TypiClust's distances expect them."""
    return torch.nn.functional.normalize(torch.from_numpy(features), dim=1)
