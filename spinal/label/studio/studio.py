"""Active learning in Label Studio: reads tasks and annotations, writes predictions with scores.

Label Studio's "uncertainty sampling" asks for the task whose prediction has the lowest score, among
predictions of the project's model version. So each round writes predictions for the tasks that
spinal would ask next, under a new version, with scores in that order. Then it sets this version as
the project's.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.data import UNLABELLED
from spinal.encoders import Encoder
from spinal.encoders.cache import vectors_of
from spinal.encoders.vectors import StoredVectors, content_hash
from spinal.errors import DataError, SpinalError
from spinal.label.exports.label_studio import certainty, choice
from spinal.label.learning import rounds
from spinal.label.store.settings import ProjectSettings
from spinal.label.studio.api import StudioAPI, StudioError

SAMPLING = "Uncertainty sampling"
#: Prefix of the model versions that spinal writes; the number of the round follows.
VERSION = "spinal-"
_CHUNK = 64
#: Every 60th time, all annotations are read: a changed annotation does not change the counts.
_THOROUGH = 60
_THREADS = 8

Say = Callable[[str], None]


class Studio:
    """Supplies a Label Studio project with questions.

    Args:
        api: the connection to Label Studio.
        number: id of the project.
        encoder: computes the features of the images.
        folder: where features are stored.
        ahead: number of next tasks to write predictions for; None for all. Label Studio takes about
            a second for a few dozen.
        batch: number of new annotations after which the model is fitted again.
        method: see `spinal.learner.ActiveLearner`.
        acquisition: see `spinal.learner.ActiveLearner`.
        seed: of all randomness.
        say: called with messages for the user.

    Attributes:
        history: the tasks of each round of this object, in the order in which they are asked.
    """

    def __init__(
        self,
        api: StudioAPI,
        number: int,
        encoder: Encoder,
        folder: Path,
        *,
        ahead: int | None = 100,
        batch: int = 10,
        method: str = "spn-cnn",
        acquisition: str | None = None,
        seed: int = 0,
        say: Say = print,
    ) -> None:
        self.api, self.number, self.encoder = api, number, encoder
        self.ahead, self.say = ahead, say
        self.batch = batch if ahead is None else min(batch, ahead)
        self._vectors = vectors_of(folder, encoder)
        self._options: dict[str, Any] = {
            "method": method, "acquisition": acquisition, "seed": seed,
        }  # fmt: skip
        self._fitted: dict[int, int] | None = None  # the labels of the last round
        self._tasks = 0  # the number of tasks then
        self._seen: tuple[int, int] | None = None
        self.history: list[list[int]] = []
        self.project = api.project(number)
        rounds_so_far = [_round(version) for version in api.versions(number)]
        self._round = max(rounds_so_far, default=0)

    def run(self, every: float = 5.0) -> None:
        """Look for annotations every few seconds, until interrupted."""
        self.say(f"watching project {self.number} of {self.api.url}; stop with Ctrl-C")
        for look in itertools.count(1):
            try:
                self.step()
            except StudioError as error:
                self.say(f"{error}; trying again")
            time.sleep(every)
            if look % _THOROUGH == 0:
                self._seen = None

    def step(self, *, force: bool = False) -> bool:
        """Do a round if there are enough new annotations or ``force`` is set; whether it did."""
        seen = self.api.counts(self.number)
        if seen == self._seen and not force:
            return False
        self.project = self.api.project(self.number)
        tasks = self.api.tasks(self.number)
        chosen = self.api.annotations(self.number, self.project.control)
        labels = self._labels(chosen)
        self._seen = seen
        new = len(labels.items() ^ (self._fitted or {}).items())
        due = self._fitted is None or new >= self.batch or len(tasks) != self._tasks
        if not due and not force:
            return False
        self._do_round(tasks, chosen, labels)
        return True

    def _labels(self, chosen: dict[int, set[str]]) -> dict[int, int]:
        """The class of each task, if all annotations agree on it."""
        number = {name: i for i, name in enumerate(self.project.classes)}
        return {
            task: number[label]
            for task, labels in chosen.items()
            for label in labels
            if len(labels) == 1 and label in number
        }

    def _do_round(
        self, tasks: dict[int, dict[str, Any]], chosen: dict[int, set[str]], labels: dict[int, int]
    ) -> None:
        snapshot = self._snapshot(tasks, chosen, labels)
        settings = ProjectSettings(self.project.classes, audit=0, **self._options)
        number = self._round + 1
        n = len(snapshot.askable) if self.ahead is None else self.ahead
        n = min(n, len(snapshot.askable))
        if not n:
            self.say(f"{len(labels)} labels; nothing left to ask")
        elif len(set(labels.values())) < 2:
            first = rounds.first_questions(snapshot, n, settings.seed)
            self._write(number, [task for task, _ in first], tasks, None)
            self.say(f"round {number}: {len(first)} tasks that cover the images")
        else:
            result = rounds.fit(snapshot, settings, number, n)
            row = {int(task): i for i, task in enumerate(snapshot.images)}
            queue = [task for task, _ in result.queue]
            self._write(number, queue, tasks, result.probs[[row[task] for task in queue]])
            self.say(f"round {number}: {len(labels)} labels, fitted in {result.seconds:.1f} s")
        self._fitted, self._tasks = labels, len(tasks)

    def _snapshot(
        self, tasks: dict[int, dict[str, Any]], chosen: dict[int, set[str]], labels: dict[int, int]
    ) -> rounds.Snapshot:
        addresses = {task: str(data.get(self.project.column, "")) for task, data in tasks.items()}
        places = self._places(list(addresses.values()))
        is_stored = places >= 0
        if not is_stored.any():
            raise SpinalError(f"project {self.number} of {self.api.url}: no image can be read")
        images = np.array(list(addresses), np.int64)[is_stored]
        return rounds.Snapshot(
            images,
            StoredVectors(self._vectors, places[is_stored]),
            np.array([labels.get(int(task), UNLABELLED) for task in images], np.int64),
            np.zeros(len(images), bool),
            np.array([int(task) not in chosen for task in images], bool),
        )

    def _places(self, addresses: Sequence[str]) -> NDArray[np.int64]:
        """Rows of the features of images; new images are downloaded, but only features stored."""
        keys = [content_hash(f"{self.api.url} {address}".encode()) for address in addresses]
        new = [i for i, key in enumerate(keys) if self._vectors.find(key) is None]
        with ThreadPoolExecutor(_THREADS) as pool:
            for start in range(0, len(new), _CHUNK):
                part = new[start : start + _CHUNK]
                fetched = list(pool.map(self._fetch, [addresses[i] for i in part]))
                good = [(i, x) for i, x in zip(part, fetched, strict=True) if x is not None]
                if good:
                    features = self.encoder.embed([prepared for _, prepared in good])
                    self._vectors.add([keys[i] for i, _ in good], features)
                self.say(f"features of {start + len(part)} of {len(new)} new images")
        return self._vectors.places(keys)

    def _fetch(self, address: str) -> Any:
        """An image, prepared for the encoder; None if it cannot be used."""
        try:
            return self.encoder.prepare(self.api.image(address))
        except DataError as error:
            self.say(f"skipped: {address}: {error}")
            return None

    def _write(
        self,
        number: int,
        queue: Sequence[int],
        tasks: dict[int, dict[str, Any]],
        probs: NDArray[np.float32] | None,
    ) -> None:
        """Write predictions for tasks, best first, and make the project use them."""
        project, version = self.project, f"{VERSION}{number}"
        results: list[list[dict[str, Any]]] = [[] for _ in queue]
        columns: list[dict[str, float]] = [{} for _ in queue]
        scores = [i / len(queue) for i in range(len(queue))]
        if probs is not None:
            entropy = -(probs * np.log(np.maximum(probs, 1e-30))).sum(1)
            # Scores follow the order of the queue, which need not be that of the entropy.
            scores = sorted(certainty(float(h), len(project.classes)) for h in entropy)
            for i, p in enumerate(probs):
                results[i] = choice(project.classes[p.argmax()], project.control, project.shown)
                columns[i] = {
                    "uncertainty": round(float(entropy[i]), 6),
                    "confidence": round(float(p.max()), 6),
                }
        predictions = [
            {"task": task, "result": result, "score": score, "model_version": version}
            for task, result, score in zip(queue, results, scores, strict=True)
        ]
        self.api.import_predictions(self.number, predictions)
        self.api.change_project(self.number, model_version=version)
        if project.sampling != SAMPLING:
            self.api.change_project(self.number, sampling=SAMPLING)
            self.say(f"project {self.number} now uses {SAMPLING!r}, not {project.sampling!r}")
        self._round = number
        self.history.append(list(queue))
        for task, column in zip(queue, columns, strict=True):
            if column:
                self.api.change_task(task, tasks[task] | column)
        for old in self.api.versions(self.number):
            if _round(old) and old != version:
                self.api.delete_version(self.number, old)


def _round(version: str) -> int:
    """The number of the round in a version that spinal wrote; 0 for other versions."""
    number = version.removeprefix(VERSION)
    return int(number) if number != version and number.isdecimal() else 0
