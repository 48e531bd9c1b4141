"""A dataset for experiments: points with labels, in two parts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.data.points import iter_batches


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points with labels, in the predefined training and test parts.

    Attributes:
        name: Name of the dataset, as in `dataset_names`.
        train_images: uint8 array [N, H, W, C], which may be memory-mapped; or other points, such as
            features [N, D]. Read them in batches.
        train_labels: int64 array [N], indices into ``classes``.
        test_images: The same for M test points.
        test_labels: int64 array [M], indices into ``classes``.
        classes: Names of the classes.
        source: The folder that the files are in, or "built in".
        extras: Further arrays from the files by name, one entry per image, such as
            ``test_certain``.
    """

    name: str
    train_images: Any
    train_labels: NDArray[np.int64]
    test_images: Any
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    source: str
    extras: Mapping[str, NDArray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, train {self.train_images.shape}, "
            f"test {self.test_images.shape}, {len(self.classes)} classes, from {self.source})"
        )

    def fingerprint(self) -> str:
        """A hash of all points, labels and classes, 16 hexadecimal digits."""
        digest = hashlib.blake2b(repr(self.classes).encode(), digest_size=8)
        for points, labels in (
            (self.train_images, self.train_labels),
            (self.test_images, self.test_labels),
        ):
            digest.update(f"{points.shape[1:]} {labels.tolist()}".encode())
            texts = getattr(points, "items", None)
            if isinstance(texts, list):  # their vectors are rounded differently on other machines
                digest.update(repr(texts).encode())
                continue
            for batch in iter_batches(points, np.arange(len(points))):
                digest.update(np.ascontiguousarray(batch).tobytes())
        return digest.hexdigest()
