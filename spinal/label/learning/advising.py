"""Advice for the user: how many predictions more answers would change."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from spinal.errors import FileFormatError
from spinal.label.learning.learnt import learnt_classes
from spinal.label.learning.rounds import Round, Snapshot
from spinal.label.learning.sets import predicted, set_codes
from spinal.label.store.project import Project
from spinal.learner.advice import History


def advise(project: Project, snapshot: Snapshot, result: Round, classes: tuple[str, ...]) -> str:
    """Add a fit to the history of the project, and return the advice; empty if there is none yet.

    It is based on predictions for images of the audit. If the classes have changed since the last
    fit, or the file is damaged, a new history starts.
    """
    file = project.history_file
    reserved = np.intersect1d(snapshot.images[snapshot.reserved], result.images)
    history = History.begin(reserved)
    if file.exists() and learnt_classes(project) == classes:
        with suppress(FileFormatError):
            history = History.load(file)
    if not len(history.points) or not np.isin(history.points, result.images).all():
        return ""
    rows = np.searchsorted(result.images, history.points)
    probs = result.probs[rows]
    multi = project.settings.multi
    predictions = set_codes(predicted(probs)) if multi else probs.argmax(1)
    history = history.add(result.trained_on, predictions)
    history.save(file)
    advice = history.advice(snapshot.images[snapshot.training])
    return "" if advice is None else str(advice)
