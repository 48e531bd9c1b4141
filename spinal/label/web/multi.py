"""Views and dashboard where an image can have several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.consensus import NO_ANSWER, find_consensus
from spinal.label.learning.scores import average_precision, f1, with_interval
from spinal.label.learning.sets import UNKNOWN, confidence, predicted, suspect_sets
from spinal.label.web.dashboard import Dashboard, calibration, share
from spinal.label.web.views import Views


class MultiViews(Views):
    """Like `Views`; the label of an image is a list of classes."""

    def _guess(self, beliefs: Beliefs, row: int) -> dict[str, Any]:
        probs = beliefs.probs[row]
        return {
            "label": _names(beliefs.classes, predicted(probs)),
            "confidence": float(confidence(probs[None])[0]),
        }

    def mistakes(self) -> list[dict[str, Any]]:
        """Labelled images that probably lack a class, or have one too many.

        ``instead`` lists these classes, each with its probability.
        """
        beliefs, images, rows, labels = self.checked()
        if beliefs is None:
            return []
        seen = self.store.answered_as("mistake") | self.store.answered_as("again")
        stored = self.store.catalogue.rows(images.tolist())
        probs = beliefs.checked_probs[rows]
        return [
            {
                "image": number, "path": row["path"], "label": self.store.shown(row["label"]),
                "instead": [
                    {"label": beliefs.classes[c], "confidence": float(probs[i, c])}
                    for c in np.flatnonzero(wrong)
                ],
            }
            for i, wrong in zip(*suspect_sets(probs, labels), strict=True)
            if (number := int(images[i])) not in seen and not (row := stored[number])["reserved"]
        ]  # fmt: skip

    def checked(
        self,
    ) -> tuple[Beliefs | None, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labelled images with predictions by models trained without their labels.

        Returns:
            The beliefs, numbers of the M images, their rows in ``checked``, and current labels
            ``[M, C]``: 1 present, 0 absent, -1 unknown.
        """
        beliefs, classes = self.beliefs, self.store.classes.names()
        if beliefs is None or beliefs.checked_probs.shape[1] != len(classes):
            nothing = np.empty(0, np.int64)
            return None, nothing, nothing, np.empty((0, len(classes)), np.int64)
        labels, known = self._labels_of(beliefs.checked)
        return beliefs, beliefs.checked[known], np.flatnonzero(known), labels[known]

    def audited(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Predictions and current labels of the audit, both ``[A, C]``, without unknown values."""
        beliefs, classes = self.beliefs, self.store.classes.names()
        if beliefs is None or beliefs.audited_probs.shape[1] != len(classes):
            return np.empty((0, len(classes)), np.float32), np.empty((0, len(classes)), np.int64)
        labels, _ = self._labels_of(beliefs.audited)
        whole = (labels != UNKNOWN).all(1) & ~np.isnan(beliefs.audited_probs).any(1)
        return beliefs.audited_probs[whole], labels[whole]

    def _labels_of(self, images: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Labels ``[N, C]`` of images, see `checked`, and which images have one, ``[N]``."""
        classes, unsaid = self.store.classes.names(), self.store.unsaid()
        rows = self.store.catalogue.rows(images.tolist())
        labels = np.full((len(images), len(classes)), UNKNOWN, np.int64)
        for i, image in enumerate(images.tolist()):
            names = self.store.shown(rows[image]["label"])
            if names is not None:
                silent = unsaid.get(image, ())
                labels[i] = [UNKNOWN if c in silent else c in names for c in classes]
        return labels, (labels != UNKNOWN).any(1)

    def _consensus(self) -> dict[int, dict[str, Any]]:
        """The consensus of the model and all people, class by class."""
        beliefs = self.beliefs
        if beliefs is None:
            return {}
        answers = [
            (row["image"], row["person"], self.store.shown(row["label"]) or ())
            for row in self.store.shared_answers() if beliefs.row(row["image"]) is not None
        ]  # fmt: skip
        images, people = sorted({row[0] for row in answers}), sorted({row[1] for row in answers})
        if not images:
            return {}
        probs = beliefs.probs[np.searchsorted(beliefs.images, images)]
        # Disputed images were not used for training; others have models trained without them.
        checked = dict(zip(beliefs.checked.tolist(), beliefs.checked_probs, strict=True))
        for i, image in enumerate(images):
            held_out = checked.get(image, probs[i])
            probs[i] = np.where(np.isnan(held_out), probs[i], held_out)
        together = np.empty_like(probs, np.float64)
        for c, name in enumerate(beliefs.classes):
            votes = np.full((len(images), len(people)), NO_ANSWER)
            for image, person, names in answers:
                votes[images.index(image), people.index(person)] = name in names
            both = np.stack([1 - probs[:, c], probs[:, c]], 1)
            together[:, c] = find_consensus(votes, both).probs[:, 1]
        return {
            image: {"label": _names(beliefs.classes, predicted(p)), "confidence": float(sure)}
            for image, p, sure in zip(images, together, confidence(together), strict=True)
        }


class MultiDashboard(Dashboard):
    """Like `Dashboard`, class by class; there is no confusion matrix.

    Precision, recall and F1 are for labelled images, predicted by models trained without their
    labels. The intervals of means over classes are bootstrap intervals; see
    `spinal.label.learning.scores`.
    """

    def quality(self) -> dict[str, Any]:
        views = self.views
        assert isinstance(views, MultiViews)
        beliefs, _, rows, labels = views.checked()
        classes = self.project.settings.classes
        probs = np.full(labels.shape, np.nan) if beliefs is None else beliefs.checked_probs[rows]
        audited_probs, audited = views.audited()
        is_right = predicted(audited_probs) == audited
        judged = ~np.isnan(probs) & (labels != UNKNOWN)
        said, present = judged & predicted(np.nan_to_num(probs)), judged & (labels == 1)
        hits = (said & present).sum(0)
        return {
            "multi": True,
            "classes": [
                {
                    "name": name,
                    "precision": share(int(hits[c]), int(said[:, c].sum())),
                    "recall": share(int(hits[c]), int(present[:, c].sum())),
                    "audited": len(audited),
                    "audited_right": int(is_right[:, c].sum()),
                }
                for c, name in enumerate(classes)
            ],
            "scores": {
                "macro_f1": with_interval(f1, probs, labels),
                "map": with_interval(average_precision, probs, labels),
            },
            "matrix": [],
            "calibration": calibration(confidence(audited_probs), is_right.all(1)),
        }


def _names(classes: tuple[str, ...], chosen: NDArray[np.bool_]) -> list[str]:
    return [name for name, is_chosen in zip(classes, chosen, strict=True) if is_chosen]
