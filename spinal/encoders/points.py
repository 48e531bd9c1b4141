"""Images in arrays, such as those of a dataset, seen through a backbone: for experiments."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import platformdirs
from numpy.typing import NDArray

from spinal.data import Dataset, Points
from spinal.encoders.backbone import Backbone
from spinal.encoders.cache import vectors_of
from spinal.encoders.vectors import content_hash

_CHUNK = 128


def cache_folder() -> Path:
    """Where features of datasets are kept: the folder in ``SPINAL_CACHE``, or the user's cache."""
    named = os.environ.get("SPINAL_CACHE")
    return (Path(named) if named else platformdirs.user_cache_path("spinal")) / "features"


def embedded(dataset: Dataset, backbone: Backbone) -> Dataset:
    """The same dataset, with features in the place of images; computed when they are needed."""
    folder = cache_folder()
    # What runs do with the images of a dataset, all points can do.
    images: dict[str, Any] = {
        part: EmbeddedImages(getattr(dataset, part), backbone, folder)
        for part in ("train_images", "test_images")
    }
    return replace(dataset, **images)


class EmbeddedImages:
    """Points that are the features of images: each is computed once, and kept on disk.

    Processes that share the folder share the work.

    Args:
        images: uint8 ``[N, H, W, C]``.
        backbone: what computes the features.
        folder: where they are kept.
    """

    def __init__(self, images: Points | NDArray, backbone: Backbone, folder: Path) -> None:
        self._images, self._backbone = images, backbone
        self._vectors = vectors_of(folder, backbone)
        self._lock = filelock.FileLock(self._vectors.folder / ".lock")
        self._places = np.full(len(images), -1, np.int64)  # rows on disk, as far as they are known

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return len(self._places), self._backbone.features

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.float32]:
        """The batch ``[B, D]``."""
        indices = np.asarray(indices, np.int64)
        unknown = np.unique(indices[self._places[indices] < 0])
        for start in range(0, len(unknown), _CHUNK):
            self._locate(unknown[start : start + _CHUNK])
        return self._vectors.read(self._places[indices])

    def _locate(self, indices: NDArray[np.int64]) -> None:
        """Find the rows of some images; compute those that are not there."""
        images = self._images[indices]
        hashes = [content_hash(str(image.shape).encode() + image.tobytes()) for image in images]
        places = self._vectors.places(hashes)
        if (places < 0).any():
            with self._lock:  # who had to wait finds what the other has computed
                new = np.flatnonzero(self._vectors.places(hashes) < 0)
                if len(new):
                    features = self._backbone.compute(images[new])
                    self._vectors.add([hashes[i] for i in new], features)
            places = self._vectors.places(hashes)
        self._places[indices] = places
