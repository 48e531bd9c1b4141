"""The images that a run asked for first, kept beside its rounds: a report needs no dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.data import Dataset
from spinal.files import read_arrays, replacing

#: As many as are kept; fewer, if a run asks for fewer.
FIRST = 20

FILE_NAME = "asked.npz"


@dataclass(frozen=True)
class Asked:
    """Images ``[N, H, W, C]`` in the order of the questions, their labels, and all class names."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def save(self, folder: Path) -> None:
        """Write it into the folder of a run."""
        with replacing(folder / FILE_NAME) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, images=self.images, labels=self.labels, classes=np.array(self.classes)
            )

    @classmethod
    def load(cls, folder: Path) -> Asked | None:
        """What the run of a folder asked for first; None if that was not kept.

        Raises:
            FileFormatError: if the file is damaged.
        """
        path = folder / FILE_NAME
        if not path.exists():
            return None
        arrays = read_arrays(path, ("images", "labels", "classes"))
        names = tuple(str(name) for name in arrays["classes"])
        return cls(arrays["images"], arrays["labels"], names)


def keep_asked(folder: Path, dataset: Dataset, rounds: Sequence[dict[str, Any]]) -> None:
    """Keep the first images that these rounds asked for, if it is images that they chose from."""
    picks = [index for line in rounds for index in line["picks"]][:FIRST]
    if picks and dataset.train_images.ndim == 4:
        images, labels = dataset.train_images[picks], dataset.train_labels[picks]
        Asked(images, labels, dataset.classes).save(folder)
