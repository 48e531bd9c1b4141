"""Predictions of a round of the model for all images, in one file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.files import read_arrays, replacing


@dataclass(frozen=True, eq=False)
class Beliefs:
    """N images with features, C classes, M labelled images that were assessed by cross-validation.

    Attributes:
        round: of the model.
        images: numbers of the images, ascending, ``[N]``.
        probs: class probabilities, ``[N, C]``.
        log_density: log-density of each image, ``[N]``: low for images unlike the labelled ones.
        checked: numbers of labelled images, ``[M]``.
        checked_probs: class probabilities of these by models trained without their labels,
            ``[M, C]``.
        shares: the weight of each classifier in ``probs``; None if one predicts alone.
        advice: how many predictions more answers would change, for the user; empty before that can
            be told.
    """

    round: int
    images: NDArray[np.int64]
    probs: NDArray[np.float32]
    log_density: NDArray[np.float32]
    checked: NDArray[np.int64]
    checked_probs: NDArray[np.float32]
    shares: dict[str, float] | None = None
    advice: str = ""

    def save(self, path: Path) -> None:
        """Write the file, atomically."""
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, **vars(self) | {"shares": json.dumps(self.shares)})

    @classmethod
    def load(cls, path: Path) -> Beliefs:
        """Read a file that `save` wrote. Nothing is unpickled."""
        arrays = read_arrays(path, ("round", *_ARRAYS), optional=("shares", "advice"))
        shares = json.loads(str(arrays.get("shares", "null")))
        values: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        advice = str(arrays.get("advice", ""))
        return cls(round=int(arrays["round"]), shares=shares, advice=advice, **values)

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
        """Rows of the images that are predicted to be of a class, most confident first."""
        rows = np.flatnonzero(self.probs.argmax(1) == label)
        return rows[np.argsort(-self.probs[rows, label], kind="stable")]

    def strangest(self) -> NDArray[np.int64]:
        """All rows by density, lowest first."""
        return np.argsort(self.log_density, kind="stable")


_ARRAYS = ("images", "probs", "log_density", "checked", "checked_probs")
