"""The views of the page beyond single questions: guesses, likely mistakes, outliers, disputes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project
from spinal.methods import CLASSIFIERS

#: Images that are looked up at once.
_CHUNK = 500


class Views:
    """What the newest model believes, and lists that follow from it.

    Images that are kept for testing appear in none of them: a test that had been chosen, or
    corrected, by what the model believes would flatter it.
    """

    def __init__(self, project: Project) -> None:
        self.project, self.store = project, project.store
        self._beliefs: Beliefs | None = None
        self._read: tuple[int, int] | None = None

    @property
    def beliefs(self) -> Beliefs | None:
        """Of the newest round; read again when its file has changed."""
        file: Path = self.project.beliefs_file
        try:
            stat = file.stat()
        except FileNotFoundError:
            return None
        now = (stat.st_mtime_ns, stat.st_ino)
        if now != self._read:
            self._beliefs, self._read = Beliefs.load(file), now
        return self._beliefs

    def shares(self) -> dict[str, float] | None:
        """The weight of each classifier in what the model believes; None if one predicts alone."""
        if self.beliefs is None or self.beliefs.shares is None:
            return None
        return {CLASSIFIERS.get(name, name): share for name, share in self.beliefs.shares.items()}

    def guesses(self, label: str, start: int, n: int) -> dict[str, Any]:
        """Unlabelled images that the model is surest are of a class."""
        known = self.beliefs
        classes = self.project.settings.classes
        if known is None or label not in classes:
            return {"images": [], "more": False}
        return self._page(known, known.surest(classes.index(label)), start, n)

    def outliers(self, start: int, n: int) -> dict[str, Any]:
        """Unlabelled images by density, the least usual first."""
        known = self.beliefs
        if known is None:
            return {"images": [], "more": False}
        return self._page(known, known.strangest(), start, n)

    def mistakes(self) -> list[dict[str, Any]]:
        """Labelled images that a model which was not told their label believes to be another class.

        The most doubtful come first. What somebody has looked at here is not listed again.
        """
        known = self.beliefs
        if known is None or not len(known.checked):
            return []
        classes = self.project.settings.classes[: known.checked_probs.shape[1]]
        labels = {row["id"]: row for row in self.store.labelled()}
        seen = self.store.answered_as("mistake")
        doubtful = []
        for image, probs in zip(known.checked.tolist(), known.checked_probs, strict=True):
            row = labels.get(image)
            if row is None or image in seen or row["label"] not in classes or row["holdout"]:
                continue
            given = float(probs[classes.index(row["label"])])
            best = int(probs.argmax())
            if classes[best] != row["label"]:
                doubtful.append(
                    {
                        "image": image,
                        "path": row["path"],
                        "label": row["label"],
                        "confidence": given,
                        "instead": classes[best],
                        "instead_confidence": float(probs[best]),
                    }
                )
        return sorted(doubtful, key=lambda tile: tile["confidence"] - tile["instead_confidence"])

    def disagreements(self) -> list[dict[str, Any]]:
        """Images that people disagree on, and what each of them said."""
        rows = self.store.disagreements()
        return [
            {
                "image": image, "path": said[0]["path"],
                "answers": [{"person": s["person"], "label": s["label"]} for s in said],
            }
            for image, said in ((k, list(g)) for k, g in groupby(rows, lambda r: r["image"]))
        ]  # fmt: skip

    def _page(self, known: Beliefs, rows: np.ndarray, start: int, n: int) -> dict[str, Any]:
        """From ``start`` on, ``n`` of the rows whose images nobody has said anything about."""
        tiles: list[dict[str, Any]] = []
        for chunk in (rows[i : i + _CHUNK] for i in range(0, len(rows), _CHUNK)):
            open_images = self.store.unanswered(known.images[chunk].tolist())
            tiles += self._tiles(known, chunk, open_images)
            if len(tiles) > start + n:
                break
        return {"images": tiles[start : start + n], "more": len(tiles) > start + n}

    def _tiles(
        self, known: Beliefs, rows: Iterable[int], paths: dict[int, str]
    ) -> list[dict[str, Any]]:
        classes = self.project.settings.classes
        tiles = []
        for row in rows:
            image = int(known.images[row])
            if image in paths:
                best = int(known.probs[row].argmax())
                tiles.append(
                    {
                        "image": image,
                        "path": paths[image],
                        "label": classes[best],
                        "confidence": float(known.probs[row, best]),
                    }
                )
        return tiles
