"""Points that are the vectors of items in memory: images of a dataset, a list of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
import platformdirs
from numpy.typing import NDArray

from spinal.data import Points
from spinal.encoders.cache import vectors_of
from spinal.encoders.encoder import Encoder, encode
from spinal.encoders.vectors import content_hash

if TYPE_CHECKING:
    from spinal.data import Dataset

_CHUNK = 128


def cache_folder() -> Path:
    """Where features of datasets are kept: the folder in ``SPINAL_CACHE``, or the user's cache."""
    named = os.environ.get("SPINAL_CACHE")
    return (Path(named) if named else platformdirs.user_cache_path("spinal")) / "features"


def encode_dataset(dataset: Dataset, encoder: Encoder) -> Dataset:
    """The same dataset, with features in the place of images; computed when they are needed."""
    folder = cache_folder()
    # What runs do with the images of a dataset, all points can do.
    images: dict[str, Any] = {
        part: EncodedPoints(getattr(dataset, part), encoder, folder)
        for part in ("train_images", "test_images")
    }
    return replace(dataset, **images)


class EncodedPoints:
    """Points ``[N, D]`` for a `spinal.Pool`: each vector is computed once, and kept on disk.

    Processes that share the folder share the work.

    Args:
        items: N of what the encoder takes: images, uint8 ``[N, H, W, C]``, or a list of texts.
        encoder: what computes the vectors.
        folder: where they are kept.
    """

    def __init__(
        self, items: Sequence[Any] | NDArray | Points, encoder: Encoder, folder: Path
    ) -> None:
        self._items, self._encoder = items, encoder
        self._vectors = vectors_of(folder, encoder)
        self._lock = filelock.FileLock(self._vectors.folder / ".lock")
        self._places = np.full(len(items), -1, np.int64)  # rows on disk, as far as they are known

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return len(self._places), self._encoder.width

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
        """Find the rows of some items; compute those that are not there."""
        items = self._take(indices)
        hashes = [content_hash(_content(item)) for item in items]
        places = self._vectors.places(hashes)
        if (places < 0).any():
            with self._lock:  # who had to wait finds what the other has computed
                new = np.flatnonzero(self._vectors.places(hashes) < 0)
                if len(new):
                    vectors = encode(self._encoder, [items[i] for i in new.tolist()])
                    self._vectors.add([hashes[i] for i in new], vectors)
            places = self._vectors.places(hashes)
        self._places[indices] = places

    def _take(self, indices: NDArray[np.int64]) -> Sequence[Any] | NDArray:
        if isinstance(self._items, np.ndarray | Points):
            return self._items[indices]  # points are read in batches
        return [self._items[i] for i in indices.tolist()]


def _content(item: str | NDArray) -> bytes:
    """The bytes that an item is known by."""
    if isinstance(item, str):
        return item.encode()
    return str(item.shape).encode() + item.tobytes()
