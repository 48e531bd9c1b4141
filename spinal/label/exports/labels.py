"""What is written: the labels that people gave, and what the model predicts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinal.files import write_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of images or texts.

    Attributes:
        folder: where the images are; of texts, the folder or the table.
        classes: names of the classes.
        given: by people, a row for each image: ``path`` (in the folder), ``label``, ``person``,
            ``at``, ``round``, ``reason``, ``audit``.
        predicted: by the model, for other images: ``path``, ``predicted``, ``confidence``,
            ``uncertainty``, ``log_density``, and a probability for each class.
        keys: the columns that stand in the place of ``path`` in both: of texts, ``text`` and before
            it ``row`` (from 1, in a table) or ``path``.
    """

    folder: Path
    classes: tuple[str, ...]
    given: pd.DataFrame
    predicted: pd.DataFrame | None = None
    keys: tuple[str, ...] = ("path",)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
