"""The views of the page besides questions: guesses, likely mistakes, outliers, disagreements."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np

from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.consensus import NO_ANSWER, find_consensus
from spinal.label.learning.suspicion import suspect_answers
from spinal.label.store.project import Project
from spinal.label.web.newest import Newest
from spinal.methods import CLASSIFIERS

#: Number of images that are looked up at once.
_CHUNK = 500


class Views:
    """Predictions of the newest model, and lists of images derived from them.

    Images that are reserved for the audit are not listed: if the model helped to choose or correct
    their labels, the estimated accuracy would be too high.
    """

    def __init__(self, project: Project) -> None:
        self.project, self.store = project, project.store
        self._newest = Newest(project.beliefs_file, Beliefs.load)
        self._beliefs: tuple[Beliefs, Beliefs] | None = None  # as loaded; with the current classes

    @property
    def beliefs(self) -> Beliefs | None:
        """The beliefs of the newest round, with the current classes."""
        newest = self._newest.get()
        if newest is None:
            return None
        classes = self.store.classes.names()
        if (
            self._beliefs is None
            or self._beliefs[0] is not newest
            or self._beliefs[1].classes != classes
        ):
            self._beliefs = newest, newest.for_classes(classes)
        return self._beliefs[1]

    def shares(self) -> dict[str, float] | None:
        """The weight of each classifier in the predictions; None if there is only one."""
        if self.beliefs is None or self.beliefs.shares is None:
            return None
        return {CLASSIFIERS.get(name, name): share for name, share in self.beliefs.shares.items()}

    def guesses(self, label: str, start: int, n: int) -> dict[str, Any]:
        """Unlabelled images of a predicted class, most confident first."""
        beliefs = self.beliefs
        if beliefs is None or label not in beliefs.classes:
            return {"images": [], "more": False}
        return self._page(beliefs, beliefs.surest(beliefs.classes.index(label)), start, n)

    def outliers(self, start: int, n: int) -> dict[str, Any]:
        """Unlabelled images, lowest density first."""
        beliefs = self.beliefs
        if beliefs is None:
            return {"images": [], "more": False}
        return self._page(beliefs, beliefs.strangest(), start, n)

    def mistakes(self) -> list[dict[str, Any]]:
        """Labelled images whose label is probably wrong; see `suspect_answers`.

        The most suspect come first. Images that were reviewed are not listed.
        """
        beliefs = self.beliefs
        if beliefs is None or not len(beliefs.checked):
            return []
        classes = beliefs.classes
        labels = {row["id"]: row for row in self.store.labelled()}
        seen = self.store.answered_as("mistake") | self.store.answered_as("again")
        known = [
            i for i, image in enumerate(beliefs.checked.tolist())
            if image in labels and labels[image]["label"] in classes
        ]  # fmt: skip
        rows = [labels[image] for image in beliefs.checked[known].tolist()]
        given = np.array([classes.index(row["label"]) for row in rows], np.int64)
        probs = beliefs.checked_probs[known]
        return [
            {
                "image": rows[i]["id"],
                "path": rows[i]["path"],
                "label": rows[i]["label"],
                "confidence": float(probs[i, given[i]]),
                "instead": classes[instead],
                "instead_confidence": float(probs[i, instead]),
            }
            for i, instead in zip(*suspect_answers(probs, given), strict=True)
            if rows[i]["id"] not in seen and not rows[i]["reserved"]
        ]

    def disagreements(self) -> list[dict[str, Any]]:
        """Images that people disagree on, with the answer of each person, and the consensus."""
        rows, together = self.store.disagreements(), self._consensus()
        return [
            {
                "image": image, "path": said[0]["path"],
                "answers": [
                    {"person": s["person"], "label": self.store.shown(s["label"])} for s in said
                ],
                "consensus": together.get(image),
            }
            for image, said in ((k, list(g)) for k, g in groupby(rows, lambda r: r["image"]))
        ]  # fmt: skip

    def _consensus(self) -> dict[int, dict[str, Any]]:
        """The consensus of the model and all people, for images that several people labelled."""
        beliefs = self.beliefs
        if beliefs is None:
            return {}
        classes = beliefs.classes
        answers = [
            row for row in self.store.shared_answers()
            if row["label"] in classes and beliefs.row(row["image"]) is not None
        ]  # fmt: skip
        images = sorted({row["image"] for row in answers})
        people = sorted({row["person"] for row in answers})
        if not images:
            return {}
        votes = np.full((len(images), len(people)), NO_ANSWER)
        for row in answers:
            votes[images.index(row["image"]), people.index(row["person"])] = classes.index(
                row["label"]
            )
        # Disputed images were not used for training; others have models trained without them.
        probs = beliefs.probs[np.searchsorted(beliefs.images, images)]
        checked = dict(zip(beliefs.checked.tolist(), beliefs.checked_probs, strict=True))
        probs = np.array([checked.get(image, p) for image, p in zip(images, probs, strict=True)])
        together = find_consensus(votes, probs).probs
        return {
            image: {"label": classes[int(p.argmax())], "confidence": float(p.max())}
            for image, p in zip(images, together, strict=True)
        }

    def _page(self, beliefs: Beliefs, rows: np.ndarray, start: int, n: int) -> dict[str, Any]:
        """Tiles of the rows whose images have no answer: ``n`` of them, from ``start`` on."""
        tiles: list[dict[str, Any]] = []
        for chunk in (rows[i : i + _CHUNK] for i in range(0, len(rows), _CHUNK)):
            open_images = self.store.unanswered(beliefs.images[chunk].tolist())
            tiles += self._tiles(beliefs, chunk, open_images)
            if len(tiles) > start + n:
                break
        return {"images": tiles[start : start + n], "more": len(tiles) > start + n}

    def _tiles(
        self, beliefs: Beliefs, rows: Iterable[int], paths: dict[int, str]
    ) -> list[dict[str, Any]]:
        tiles = []
        for row in rows:
            image = int(beliefs.images[row])
            if image in paths:
                guess = self._guess(beliefs, row)
                tiles.append({"image": image, "path": paths[image], **guess})
        return tiles

    def _guess(self, beliefs: Beliefs, row: int) -> dict[str, Any]:
        """The model's prediction: ``label`` and ``confidence``."""
        best = int(beliefs.probs[row].argmax())
        return {"label": beliefs.classes[best], "confidence": float(beliefs.probs[row, best])}
