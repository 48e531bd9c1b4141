"""Descriptions of published datasets: their images, files and downloads.

Sizes and MD5 sums refer to the decompressed content, so a file that was compressed again is still
recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinal.data import formats
from spinal.data.formats import DataFile, Part


@dataclass(frozen=True)
class PublishedFile:
    """A published file; with ``gzipped``, its name may also end in ``.gz``."""

    name: str
    md5: str | None = None
    size: int | None = None
    gzipped: bool = False


@dataclass(frozen=True)
class Download:
    """A file to download; the checksum is for the transferred bytes."""

    url: str
    md5: str

    @property
    def filename(self) -> str:
        """The name of the file on disk."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Layout:
    """One form in which a dataset is published: its files, in the order that ``read`` takes them.

    With ``shared_names``, other datasets have files of the same names, so the content of the last
    file, a small one, is checked too.
    """

    format: str
    files: tuple[PublishedFile, ...]
    read: Callable[[Sequence[DataFile]], tuple[Part, Part]]
    shared_names: bool = False


@dataclass(frozen=True)
class Published:
    """A dataset that others have published.

    Attributes:
        image_shape: (H, W, C).
        folders: Sub-folders of a data folder to search; downloads go to the first one.
        layouts: The forms in which it may be stored, the preferred one first.
    """

    name: str
    title: str
    n_train: int
    n_test: int
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    folders: tuple[str, ...]
    layouts: tuple[Layout, ...]
    downloads: tuple[Download, ...]

    @property
    def train_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, C) of the training images."""
        return (self.n_train, *self.image_shape)

    @property
    def test_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, C) of the test images."""
        return (self.n_test, *self.image_shape)


NPZ = Layout(
    "NPZ",
    (PublishedFile("train.npz"), PublishedFile("test.npz")),
    formats.read_npz,
    shared_names=True,
)
DIGITS = tuple("0123456789")
