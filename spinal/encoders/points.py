"""Points that are vectors of items in memory: images of a dataset, a list of texts."""

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
    """The folder for features of datasets: ``SPINAL_CACHE``, or the user's cache."""
    named = os.environ.get("SPINAL_CACHE")
    return (Path(named) if named else platformdirs.user_cache_path("spinal")) / "features"


def encode_dataset(dataset: Dataset, encoder: Encoder) -> Dataset:
    """The same dataset, with features instead of images or texts, computed when they are needed."""
    folder = cache_folder()
    # Runs use only operations of the image array that all points support.
    parts: dict[str, Any] = {}
    for part in ("train_images", "test_images"):
        points = getattr(dataset, part)
        parts[part] = EncodedPoints(getattr(points, "items", points), encoder, folder)
    return replace(dataset, **parts)


class EncodedPoints:
    """Points ``[N, D]`` for a `spinal.Pool`; each vector is computed once and stored on disk.

    Processes that share the folder share the work.

    Args:
        items: N inputs of the encoder: images, uint8 ``[N, H, W, C]``, or a list of texts.
        encoder: computes the vectors.
        folder: where they are stored.
    """

    def __init__(
        self, items: Sequence[Any] | NDArray | Points, encoder: Encoder, folder: Path
    ) -> None:
        self._items, self._encoder, self._folder = items, encoder, folder
        self._vectors = vectors_of(folder, encoder)
        self._lock = filelock.FileLock(self._vectors.folder / ".lock")
        self._places = np.full(len(items), -1, np.int64)  # rows on disk; -1 if unknown

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

    def like(self, items: Sequence[Any]) -> EncodedPoints:
        """Other items, encoded by the same encoder."""
        return EncodedPoints(items, self._encoder, self._folder)

    def _locate(self, indices: NDArray[np.int64]) -> None:
        """Look up the rows of some items; compute and store missing vectors."""
        items = self._take(indices)
        hashes = [content_hash(_content(item)) for item in items]
        places = self._vectors.places(hashes)
        if (places < 0).any():
            with self._lock:  # another process may have computed them meanwhile
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
    """The bytes that identify an item."""
    if isinstance(item, str):
        return item.encode()
    return str(item.shape).encode() + item.tobytes()
