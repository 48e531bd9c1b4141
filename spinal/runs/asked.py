"""The first images that a run asked for, stored with its rounds, so reports need no dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.data import Dataset
from spinal.files import read_arrays, replacing
from spinal.runs.records import RoundRecord

#: Maximum number of images that are stored.
FIRST = 20

FILE_NAME = "asked.npz"


@dataclass(frozen=True)
class Asked:
    """The first images that a run asked for.

    Attributes:
        images: ``[N, H, W, C]``, in the order in which they were asked for.
        labels: ``[N]``, their classes.
        classes: Names of all classes.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def save(self, folder: Path) -> None:
        """Write the images into the folder of a run."""
        with replacing(folder / FILE_NAME) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, images=self.images, labels=self.labels, classes=np.array(self.classes)
            )

    @classmethod
    def load(cls, folder: Path) -> Asked | None:
        """Read the images from the folder of a run; None if there are none.

        Raises:
            FileFormatError: If the file is damaged.
        """
        path = folder / FILE_NAME
        if not path.exists():
            return None
        arrays = read_arrays(path, ("images", "labels", "classes"))
        names = tuple(str(name) for name in arrays["classes"])
        return cls(arrays["images"], arrays["labels"], names)


def keep_asked(folder: Path, dataset: Dataset, rounds: Sequence[RoundRecord]) -> None:
    """Store the first images that these rounds asked for, if the dataset consists of images."""
    indices = [index for record in rounds for index in record.picks][:FIRST]
    if indices and len(dataset.train_images.shape) == 4:
        images, labels = dataset.train_images[indices], dataset.train_labels[indices]
        Asked(images, labels, dataset.classes).save(folder)
