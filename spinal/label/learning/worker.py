"""The worker process: finds files, computes features, fits models, chooses questions.

``python -m spinal.label.learning.worker HOME`` works in short steps, the most urgent first: a fit
if there are enough new answers, the first questions, marked words of texts, an audit of the last
fit, features of a few more images, a check of the labels. Results are written atomically to the
files of the project. There is no other state, so the process can be killed at any time.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.encoders.vectors import DamagedVectorsError
from spinal.errors import SpinalError
from spinal.label.learning import multi, rounds
from spinal.label.learning.advising import advise
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.collecting import ProjectFeatures, Say
from spinal.label.learning.features import is_fast
from spinal.label.learning.learnt import note_learnt
from spinal.label.learning.marks import Marks
from spinal.label.learning.sets import suspect_sets
from spinal.label.learning.suspicion import suspect_answers
from spinal.label.store.database import StoreError
from spinal.label.store.project import Project, open_project
from spinal.label.store.settings import ProjectSettings

#: Number of images with features that is enough to choose first questions.
ENOUGH = 100
#: Number of images whose features are computed in one step.
CHUNK = 256
#: Seconds between two searches for new files; longer where a search takes long.
SCAN = 15.0
#: Seconds without an answer after which even a single new one causes a fit.
QUIET = 4.0
#: Minimum number of batches that a fit adds to the queue. If it is empty, questions are random.
QUEUE = 5
#: Maximum share of the answers that are asked again, because they are probably wrong.
AGAIN = 0.025


class Worker:
    """Does the work of a project, one step at a time.

    Args:
        project: the project.
        say: called with the status.
    """

    def __init__(self, project: Project, say: Say) -> None:
        self.project, self.store, self.say = project, project.store, say
        self.features = ProjectFeatures(project, say)
        self._marks = None if project.texts is None else Marks(project, self.features.encoder)
        self.woken = threading.Event()
        self._fitted: dict[int, str] = {}  # labels of the last fit: image -> class
        self._checked: dict[int, str] = {}  # labels of the last check
        #: The last fit, until its accuracy is estimated.
        self._unaudited: tuple[rounds.Snapshot, ProjectSettings, int, rounds.Round] | None = None
        self._beliefs: Beliefs | None = None
        self._fitted_features = 0  # images with features at the last fit
        self._covered = 0  # images with features when first questions were last chosen
        self._next_scan = 0.0
        self._last_answer = time.monotonic()
        self._last_change = self._fitted_at = (0, 0)

    @property
    def _model(self) -> ModuleType:
        """The functions `fit`, `audit` and `check_labels`."""
        return multi if self.project.store.multi else rounds

    @property
    def settings(self) -> ProjectSettings:
        """The settings of the project, whose classes may change at any moment."""
        return self.project.settings

    def step(self) -> bool:
        """Do the most urgent step; return False if there is nothing to do."""
        if time.monotonic() >= self._next_scan:
            self._scan()
        elif self.features.missing and is_fast(self.features.encoder):
            self.features.compute_all()
        elif self._asks_at_random() and self._first_questions_are_due():
            self._choose_first_questions()  # faster than the first fit
        elif self._fit_is_due():
            self._fit()
        elif self._first_questions_are_due():
            self._choose_first_questions()
        elif self._marks is not None and self._marks.is_due:
            self._marks.step()
        elif self._unaudited is not None:
            self._audit()
        elif self.features.missing:
            self._compute_features()
        elif self._labels() != self._checked and self._beliefs is not None:
            self._check_labels()
        else:
            return False
        return True

    def wait(self) -> None:
        """Wait for an answer, or until it is time to look for new files."""
        self.say({"state": "idle" if self._fitted else "waiting"})
        news = self._labels() != self._fitted
        pause = min(self._next_scan - time.monotonic(), QUIET if news else SCAN)
        self.woken.wait(max(0.05, pause))
        self.woken.clear()

    def _scan(self) -> None:
        began = time.monotonic()
        if self._beliefs is not None and not self.project.beliefs_file.exists():
            self._beliefs.save(self.project.beliefs_file)  # it was damaged
        joined = self.project.scan()
        if joined or not self.features.places:
            self.features.find_missing()
        self._next_scan = time.monotonic() + max(SCAN, 20 * (time.monotonic() - began))

    def _compute_features(self) -> None:
        """Compute features of a few more images, those with an answer first."""
        size = CHUNK if self._covered else ENOUGH
        self.features.compute_some(size, self._fit_is_due)

    # Labels

    def _labels(self) -> dict[int, str]:
        """The classes of all images with a label and features."""
        change = self.store.last_change()
        if change != self._last_change:
            self._last_change, self._last_answer = change, time.monotonic()
        return {
            row["id"]: row["label"]
            for row in self.store.labelled()
            if row["id"] in self.features.places and row["twin"] is None
        }

    # Questions

    def _asks_at_random(self) -> bool:
        """Whether no questions were chosen yet."""
        return not self._covered and not self.store.last_round()

    def _first_questions_are_due(self) -> bool:
        n_with_features = len(self.features.places)
        if self._fitted or not n_with_features:
            return False
        if n_with_features < ENOUGH and self.features.missing:
            return False
        if n_with_features >= 4 * self._covered:
            return True
        waiting, settings = self.store.questions.waiting(), self.settings
        return waiting < settings.batch and len(self.features.snapshot(settings).askable) > waiting

    def _choose_first_questions(self) -> None:
        self.say({"state": "fitting"})
        settings = self.settings
        snapshot = self.features.snapshot(settings)
        n = settings.first_answers + QUEUE * settings.batch
        queue = rounds.first_questions(snapshot, n, settings.seed)
        self.store.questions.hand_over(self.store.last_round(), queue)
        self._covered = len(self.features.places)

    def _fit_is_due(self) -> bool:
        """Whether there are enough new answers, a pause after some, or too few questions left."""
        labels = self._labels()
        if len(labels) < self.settings.first_answers:
            return False
        if self._beliefs is not None and self._beliefs.classes != self.settings.classes:
            return True
        new = len(labels.items() ^ self._fitted.items())
        quiet = time.monotonic() - self._last_answer > QUIET
        if new >= self.settings.batch or (new > 0 and quiet):
            return True
        # Answers that give no label: skipped or disputed images.
        since = self._last_change != self._fitted_at
        # If fits are slow, compute some features between two of them.
        has_more = len(self.features.places) > self._fitted_features or not self.features.missing
        return since and has_more and self.store.questions.waiting() < self.settings.batch

    def _fit(self) -> None:
        labels, change, settings = self._labels(), self._last_change, self.settings
        self.say({"state": "fitting"})
        snapshot = self.features.snapshot(settings)
        number = self.store.last_round() + 1
        # On a busy machine many answers arrive during a fit: choose enough questions for two fits.
        since = len(labels.items() ^ self._fitted.items()) if self._fitted else 0
        n = max(QUEUE * settings.batch, 2 * since)
        result = self._model.fit(
            snapshot, settings, number, n, self.project.model_folder,
            self.features.fine_tuned, self._say_step if settings.whole_network else None,
            self.project.features_folder,
        )  # fmt: skip
        beliefs = Beliefs(
            number, settings.classes, result.images, result.probs, result.log_density,
            shares=result.shares, advice=advise(self.project, snapshot, result, settings.classes),
            learned_from=result.learned_from, multi=settings.multi,
        )  # fmt: skip
        if self._beliefs is not None:  # keep the old ones until the next check and audit
            beliefs = beliefs.with_judgements_of(self._beliefs)
        self._beliefs = beliefs
        self._beliefs.save(self.project.beliefs_file)
        self.store.add_round(number, result.trained_on, result.seconds)
        self.store.questions.hand_over(number, result.queue)
        self._fitted, self._fitted_at = labels, change
        self._fitted_features = len(self.features.places)
        self._unaudited = (snapshot, settings, number, result)
        self.features.note_likeness()
        if self._marks is not None:
            self._marks.begin([image for image, _ in result.queue], self._beliefs)
        note_learnt(self.project, settings, labels)
        self.say({"state": "fitted"})

    def fit_to_all(self) -> None:
        """Compute the features of all images with a label, and fit the model to them."""
        self.features.find_missing()
        rows = [
            row for row in self.store.labelled()
            if row["twin"] is None and row["id"] not in self.features.places
        ]  # fmt: skip
        self.features.compute([(row["id"], row["path"]) for row in rows], len(rows))
        self._fit()

    def _audit(self) -> None:
        """Estimate the accuracy of the last fit."""
        assert self._unaudited is not None
        self.say({"state": "auditing"})
        snapshot, settings, number, result = self._unaudited
        self._unaudited = None
        found = self._model.audit(
            snapshot, settings, number, result, self.features.fine_tuned,
            self._say_step if settings.whole_network else None,
        )  # fmt: skip
        if found is not None:
            accuracy = found.accuracy
            interval = (accuracy.value, accuracy.low, accuracy.high)
            self.store.add_audit(number, accuracy.audited, accuracy.correct, interval)
            self._change_beliefs(audited=found.images, audited_probs=found.probs)
        self.say({"state": "fitted"})

    def _say_step(self, _: str, step: int, steps: int) -> None:
        if step % 10 == 0 or step == steps:
            self.say({"state": "fitting", "done": step, "total": steps})

    def _check_labels(self) -> None:
        assert self._beliefs is not None
        labels, settings = self._labels(), replace(self.settings, classes=self._beliefs.classes)
        self.say({"state": "checking"})
        snapshot = self.features.snapshot(settings)
        rows, probs = self._model.check_labels(snapshot, len(settings.classes), settings.seed)
        self._change_beliefs(checked=snapshot.images[rows], checked_probs=probs)
        self._doubt(snapshot, rows, probs)
        self._checked = labels

    def _change_beliefs(self, **changes: Any) -> None:
        assert self._beliefs is not None
        self._beliefs = replace(self._beliefs, **changes)
        self._beliefs.save(self.project.beliefs_file)

    def _doubt(
        self, snapshot: rounds.Snapshot, rows: NDArray[np.int64], probs: NDArray[np.float32]
    ) -> None:
        """Ask about the most suspect labels again, up to a share `AGAIN` of all answers."""
        find = suspect_sets if self.settings.multi else suspect_answers
        suspect, _ = find(probs, snapshot.labels[rows])
        suspect = rows[suspect][~snapshot.reserved[rows[suspect]]]
        again = self.store.answered_as("again")
        seen = again | self.store.answered_as("mistake")
        images = [image for image in snapshot.images[suspect].tolist() if image not in seen]
        left = int(AGAIN * len(self._labels())) - len(again)
        self.store.questions.doubt(images[: max(left, 0)])


def let_the_page_go_first() -> None:
    """Lower the priority of this process."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(5)
    # If Linux divides the processor between sessions, as is usual on desktops, only the niceness of
    # the session counts. The worker has its own session.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("5")


def main(home: str) -> None:
    """Work until standard input ends, which happens when the parent process ends."""
    # One thread leaves the other processors to the page; for models of this size, more threads gain
    # little. The setting affects only this process.
    torch.set_num_threads(1)
    let_the_page_go_first()
    lock = threading.Lock()

    def say(status: dict[str, Any]) -> None:
        with lock:
            print(json.dumps(status), flush=True)

    say({"state": "starting"})
    try:
        project = open_project(home)
    except SpinalError as error:
        sys.exit(str(error))  # the page shows this message
    try:
        _work(Worker(project, say))
    except StoreError as error:
        sys.exit(str(error))
    except (DamagedVectorsError, sqlite3.DatabaseError) as error:
        if isinstance(error, sqlite3.OperationalError):  # not damaged: a full disk, for example
            raise
        shutil.rmtree(project.features_folder, ignore_errors=True)
        sys.exit("the features of the images were damaged, and are computed again")
    except SpinalError as error:
        sys.exit(str(error))


def _work(worker: Worker) -> None:
    def listen() -> None:
        for _ in sys.stdin:
            worker.woken.set()
        os._exit(0)  # safe at any time: all files are written atomically

    threading.Thread(target=listen, daemon=True).start()
    while True:
        if not worker.step():
            worker.wait()


if __name__ == "__main__":
    main(sys.argv[1])
