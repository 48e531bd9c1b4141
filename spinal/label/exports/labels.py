"""The data that exports write: labels that people gave, and predictions of the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinal.files import write_text
from spinal.label.store.sets import split

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels, predictions and notes of images or texts.

    Attributes:
        folder: the folder of the images; for texts, the folder or the table.
        classes: names of the classes.
        given: labels by people, a row for each image: ``path`` (in the folder), ``label``,
            ``person``, ``at``, ``round``, ``reason``, ``audit``, ``flagged``, ``note``.
        predicted: predictions for other images: ``path``, ``predicted``, ``confidence``,
            ``uncertainty``, ``log_density``, and a probability for each class.
        multi: whether an image can have several classes. Then ``label`` and ``predicted`` contain
            all of them, see `names`, and ``given`` has a column ``y(CLASS)`` for each: 1, 0, or
            empty if the answer does not say.
        keys: the columns that identify a row in both: ``path``; for texts, ``row`` (from 1, in a
            table) or ``path``, and ``text``.
        notes: a row for each image and person who flagged it or wrote a note: ``path``, ``label``
            (which all agree on), ``flagged``, ``note``, ``person``, ``at``.
    """

    folder: Path
    classes: tuple[str, ...]
    given: pd.DataFrame
    predicted: pd.DataFrame | None = None
    keys: tuple[str, ...] = ("path",)
    notes: pd.DataFrame | None = None
    multi: bool = False

    def names(self, label: str) -> list[str]:
        """The classes in a label or prediction: one, or all of several."""
        return list(split(label)) if self.multi else [label]


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, atomically."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
