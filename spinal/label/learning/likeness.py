"""Similarity of images: the cosine of their features, which are read from disk.

The worker records where the features of each image are stored, so that the server can read them
without an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.errors import FileFormatError
from spinal.files import read_arrays, write_arrays

#: Number of rows that are read at once.
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Likeness:
    """Where the features of N images are stored.

    Attributes:
        images: numbers of the images, ascending, ``[N]``.
        places: their rows in the file, ``[N]``.
        width: number of features, D.
        file: the file, with rows of D numbers in float32.
    """

    images: NDArray[np.int64]
    places: NDArray[np.int64]
    width: int
    file: Path

    def save(self, path: Path) -> None:
        """Write the file, atomically. Of the folder of features, only the name is stored."""
        write_arrays(
            path,
            {
                "images": self.images, "places": self.places, "width": np.array(self.width),
                "names": np.array([self.file.parent.name, self.file.name]),
            },
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path, folder: Path) -> Likeness:
        """Read a file that `save` wrote.

        Args:
            path: the file.
            folder: the folder with the features of all encoders.

        Raises:
            FileFormatError: if it is damaged, or the features are missing.
        """
        arrays = read_arrays(path, ("images", "places", "width", "names"))
        parts = [str(part) for part in arrays["names"].reshape(-1)]
        if any(Path(part).name != part for part in parts):
            raise FileFormatError(f"{path}: names a file outside the project")
        likeness = cls(
            arrays["images"], arrays["places"], int(arrays["width"]), folder.joinpath(*parts)
        )
        likeness._open()
        return likeness

    def compare(
        self, image: int, others: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The similarity of one image to others.

        Args:
            image: number of the image.
            others: numbers of other images; by default, all.

        Returns:
            Numbers of the others that have features, ``[M]``, and the cosine of each, ``[M]``; both
            empty if the image itself has no features.
        """
        at = np.searchsorted(self.images, image)
        if at == len(self.images) or self.images[at] != image:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        vectors = self._open()
        one = np.array(vectors[self.places[at]])
        if others is None:
            cosines = np.concatenate(
                [_cosines(vectors[i : i + _CHUNK], one) for i in range(0, len(vectors), _CHUNK)]
            )
            return self.images, cosines[self.places]
        others = np.intersect1d(others, self.images)
        places = self.places[np.searchsorted(self.images, others)]
        return others, _cosines(vectors[places], one)

    def _open(self) -> NDArray[np.float32]:
        """The features of all files, memory-mapped; an error if there are too few rows."""
        try:
            if self.width < 1:
                raise ValueError("no features")
            rows = self.file.stat().st_size // (4 * self.width)
            if len(self.places) and self.places.max() >= rows:
                raise FileFormatError(f"{self.file}: has only {rows} rows")
            return np.memmap(self.file, "<f4", "r", shape=(rows, self.width))
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{self.file}: cannot be read ({error})") from error


def _cosines(vectors: NDArray[np.float32], one: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors) * (one @ one))
    return vectors @ one / np.maximum(lengths, 1e-30)
