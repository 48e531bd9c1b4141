"""Rounds of the model where an image can have several classes.

`fit`, `audit` and `check_labels` are as in `spinal.label.learning.rounds`. The audit is of whole
sets: a prediction is right if it is so for all classes; see `spinal.label.learning.sets`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.classifiers import fit_gaussian, held_out_parts
from spinal.classifiers.multi import UNKNOWN, main_directions
from spinal.classifiers.units import plausible_kinds
from spinal.label.learning.audit import audit_probs, estimate_accuracy
from spinal.label.learning.rounds import (
    FOLDS,
    Audit,
    Round,
    Snapshot,
    ask_up_to,
    with_reasons,
)
from spinal.label.learning.sets import confidence, predicted
from spinal.label.store.settings import ProjectSettings
from spinal.learner import MultiLearner
from spinal.networks.network import derived_seed


def fit(
    snapshot: Snapshot,
    settings: ProjectSettings,
    round: int,
    n: int,
    keep: Path | None = None,
    encoder: Any = None,
    on_step: Callable[[str, int, int], None] | None = None,
    cache: Path | None = None,
) -> Round:
    """Fit a learner to all labels; return ``n`` questions and its predictions.

    See `spinal.label.learning.rounds.fit`; ``encoder`` and ``on_step`` are for complete networks.
    """
    began = time.perf_counter()
    labelled = snapshot.training
    learner = _fit_learner(snapshot, settings, derived_seed(settings.seed, round), labelled, cache)
    seconds = time.perf_counter() - began
    indices = ask_up_to(learner, n)
    if keep is not None:
        learner.save(keep)
    probs, log_density = learner.assess(snapshot.points)
    assert learner.model is not None
    return Round(
        with_reasons(snapshot.images, indices, log_density),
        len(labelled), snapshot.images, probs, log_density, seconds, learner.model.shares(),
        "pool" if learner.model.from_pool else "labels",
    )  # fmt: skip


def audit(
    snapshot: Snapshot,
    settings: ProjectSettings,
    number: int,
    result: Round,
    encoder: Any = None,
    on_step: Callable[[str, int, int], None] | None = None,
) -> Audit | None:
    """Estimate for how many images all classes are predicted right.

    See `spinal.label.learning.rounds.audit`. Only images of which all classes are known count.
    """
    audited = snapshot.audited
    audited = audited[(snapshot.labels[audited] != UNKNOWN).all(1)]
    seed = derived_seed(settings.seed, number)

    def predict_without(held: NDArray[np.int64]) -> NDArray[np.float32]:
        known = np.setdiff1d(snapshot.training, held)
        learner = _fit_learner(snapshot, settings, seed, known, cache=None)
        return learner.assess(snapshot.points, held)[0]

    probs = audit_probs(audited, result.trained_on, len(settings.classes), predict_without)
    if probs is None:
        return None
    others = snapshot.reserved & ~snapshot.is_labelled
    is_correct = (predicted(probs) == snapshot.labels[audited]).all(1)
    accuracy = estimate_accuracy(is_correct, confidence(probs), confidence(result.probs[others]))
    return Audit(accuracy, snapshot.images[audited], probs)


def _fit_learner(
    snapshot: Snapshot,
    settings: ProjectSettings,
    seed: int,
    labelled: NDArray[np.int64],
    cache: Path | None,
) -> MultiLearner:
    learner = MultiLearner(
        snapshot.points, settings.classes, members=np.union1d(labelled, snapshot.askable),
        seed=seed, cache=cache,
    )  # fmt: skip
    learner.tell(labelled, snapshot.labels[labelled])
    learner.fit()
    return learner


def check_labels(
    snapshot: Snapshot, n_classes: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The probability of each class for labelled images, by models without their labels.

    They are circuits in closed form, as in `spinal.label.learning.rounds.check_labels`. NaN for a
    class that is known to be present, or absent, in fewer than `FOLDS` images, and where it is not
    known.

    Returns:
        Rows of the images, ``[M]``, and probabilities, ``[M, C]``.
    """
    rows = snapshot.training
    probs = np.full((len(rows), n_classes), np.nan, np.float32)
    if not len(rows):
        return rows, probs
    x = torch.from_numpy(snapshot.points[rows]).double()
    x = x - x.mean(0)
    x, kinds = x @ main_directions(x), plausible_kinds(x)[-1:]
    for i, column in enumerate(snapshot.labels[rows].T):
        known = column != UNKNOWN
        y = torch.from_numpy(column[known])
        if min(y.sum(), len(y) - y.sum()) >= FOLDS:
            parts = held_out_parts(x[known], y, FOLDS, seed)
            _, held = fit_gaussian(x[known], y, 2, parts, kinds)
            order = torch.cat([part.held.nonzero().flatten() for part in parts])
            probs[np.flatnonzero(known)[order], i] = held[:, 1].exp().float().numpy()
    checked = ~np.isnan(probs).all(1)
    return rows[checked], probs[checked]
