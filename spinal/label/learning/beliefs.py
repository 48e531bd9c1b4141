"""The predictions of one round for all images, in one file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.files import read_arrays, replacing
from spinal.label.learning.sets import confidence, predicted

_ARRAYS = ("round", "images", "probs", "log_density", "checked", "checked_probs")
_LATER_ARRAYS = ("audited", "audited_probs", "multi")  # not in files of older versions
_TEXTS = ("shares", "advice", "learned_from")


def _no_numbers() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


def _no_probs() -> NDArray[np.float32]:
    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Predictions for N images with features and C classes.

    M labelled images were checked by cross-validation. The A images of the audit are also labelled;
    they were predicted by models like that of the round.

    Attributes:
        round: of the model.
        classes: names of the classes.
        images: numbers of the images, ascending, ``[N]``.
        probs: class probabilities, ``[N, C]``.
        log_density: log-density of each image, ``[N]``; low for images unlike the labelled ones.
        checked: numbers of labelled images, ``[M]``.
        checked_probs: class probabilities of these by models trained without their labels,
            ``[M, C]``.
        shares: the weight of each classifier in ``probs``; None if there is only one.
        advice: how many predictions more answers would change, for the user; empty if unknown.
        audited: numbers of the images of the audit, ``[A]``.
        audited_probs: class probabilities of these by models trained without them, ``[A, C]``.
        learned_from: ``labels``, or ``pool`` if the images without a label were used as well.
        multi: whether an image can have several classes. Probabilities then need not sum to 1, and
            those in ``checked_probs`` may be NaN; see `spinal.label.learning.multi`.
    """

    round: int
    classes: tuple[str, ...]
    images: NDArray[np.int64]
    probs: NDArray[np.float32]
    log_density: NDArray[np.float32]
    checked: NDArray[np.int64] = field(default_factory=_no_numbers)
    checked_probs: NDArray[np.float32] = field(default_factory=_no_probs)
    shares: dict[str, float] | None = None
    advice: str = ""
    audited: NDArray[np.int64] = field(default_factory=_no_numbers)
    audited_probs: NDArray[np.float32] = field(default_factory=_no_probs)
    learned_from: str = "labels"
    multi: bool = False

    def save(self, path: Path) -> None:
        """Write the file, atomically."""
        with replacing(path) as partial, partial.open("wb") as file:
            texts = {"shares": json.dumps(self.shares), "classes": json.dumps(self.classes)}
            np.savez(file, **vars(self) | texts)

    @classmethod
    def load(cls, path: Path) -> Beliefs:
        """Read a file that `save` wrote. Nothing is unpickled."""
        values: dict[str, Any] = dict(
            read_arrays(path, (*_ARRAYS, "classes"), _LATER_ARRAYS + _TEXTS)
        )
        values |= {name: str(values[name]) for name in _TEXTS if name in values}
        values["classes"] = tuple(json.loads(str(values["classes"])))
        values["shares"] = json.loads(values.get("shares", "null"))
        values["multi"] = bool(values.get("multi", False))
        return cls(**values | {"round": int(values["round"])})

    def for_classes(self, classes: Sequence[str]) -> Beliefs:
        """The same predictions with other classes, matched by name; new ones have probability zero.

        Where an image can have several classes, the checks of new classes are NaN.
        """
        if tuple(classes) == self.classes:
            return self
        column = {name: i for i, name in enumerate(self.classes)}
        changed: dict[str, Any] = {}
        for name in ("probs", "checked_probs", "audited_probs"):
            old = getattr(self, name)
            nothing = np.nan if self.multi and name != "probs" else 0.0
            changed[name] = np.full((len(old), len(classes)), nothing, np.float32)
            for i, label in enumerate(classes):
                if len(old) and label in column:
                    changed[name][:, i] = old[:, column[label]]
        return replace(self, classes=tuple(classes), **changed)

    def with_judgements_of(self, other: Beliefs) -> Beliefs:
        """A copy with the other's predictions by models trained without some images."""
        names = ("checked", "checked_probs", "audited", "audited_probs")
        other = other.for_classes(self.classes)
        return replace(self, **{name: getattr(other, name) for name in names})

    def row(self, image: int) -> int | None:
        """The row of an image in the arrays; None if it is not in this round."""
        row = int(np.searchsorted(self.images, image))
        return row if row < len(self.images) and self.images[row] == image else None

    def about(self, image: int) -> dict[str, Any] | None:
        """Class probabilities of an image, share of images with a lower density, and the round."""
        row = self.row(image)
        if row is None:
            return None
        unusual = float((self.log_density < self.log_density[row]).mean())
        probs = [round(float(p), 4) for p in self.probs[row]]
        return {"probs": probs, "density_rank": unusual, "round": self.round}

    def surest(self, label: int) -> NDArray[np.int64]:
        """Rows of the images that are predicted to be of a class, most confident first.

        Where an image can have several, the confidence is that of the whole predicted set.
        """
        if self.multi:
            rows = np.flatnonzero(predicted(self.probs)[:, label])
            return rows[np.argsort(-confidence(self.probs[rows]), kind="stable")]
        rows = np.flatnonzero(self.probs.argmax(1) == label)
        return rows[np.argsort(-self.probs[rows, label], kind="stable")]

    def strangest(self) -> NDArray[np.int64]:
        """All rows, lowest density first."""
        return np.argsort(self.log_density, kind="stable")
