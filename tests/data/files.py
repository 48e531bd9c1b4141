"""Writers of small files in the forms in which datasets are published.

They are written from the descriptions of the formats, byte by byte where that is what a publisher's
own program did, and use nothing of `spinal.data.formats`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io

from spinal.data.published import Published, PublishedFile
from spinal.data.table import PUBLISHED

IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_NAMES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


class Small:
    """A dataset of the right form with a handful of images: 15 for training, 4 for test."""

    def __init__(self, name: str) -> None:
        entry = PUBLISHED[name]
        rng = np.random.default_rng(3)
        self.name = name
        self.train_images = rng.integers(0, 256, (15, *entry.image_shape), np.uint8)
        self.test_images = rng.integers(0, 256, (4, *entry.image_shape), np.uint8)
        self.train_labels = rng.permutation(np.arange(15) % 10)
        self.test_labels = np.array([0, 9, 5, 0])

    def published(self, contents: dict[str, bytes] | None = None, **changes: object) -> Published:
        """The table's entry with the sizes of this dataset, and with the checksums of ``contents``.

        Files that are not in ``contents`` have no checksum.
        """
        entry = PUBLISHED[self.name]

        def known(file: PublishedFile) -> PublishedFile:
            content = (contents or {}).get(file.name)
            if content is None:
                return replace(file, md5=None, size=None)
            return replace(file, md5=md5(content), size=len(content))

        layouts = tuple(
            replace(layout, files=tuple(map(known, layout.files))) for layout in entry.layouts
        )
        return replace(entry, n_train=15, n_test=4, layouts=layouts, **changes)

    def idx(self) -> dict[str, bytes]:
        parts = ((self.train_images, self.train_labels), (self.test_images, self.test_labels))
        arrays = [array for images, labels in parts for array in (images[..., 0], labels)]
        return {name: idx(array) for name, array in zip(IDX_NAMES, arrays, strict=True)}

    def cifar_batches(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Labels and planes [n, 3072] of each batch, as the publisher cut them."""
        parts = [
            (self.train_images[i : i + 3], self.train_labels[i : i + 3]) for i in range(0, 15, 3)
        ]
        parts.append((self.test_images, self.test_labels))
        return {
            name: (labels, images.transpose(0, 3, 1, 2).reshape(len(images), 3072))
            for name, (images, labels) in zip(CIFAR_NAMES, parts, strict=True)
        }

    def cifar_binary(self) -> dict[str, bytes]:
        return {
            f"{name}.bin": b"".join(
                bytes([label]) + row.tobytes() for label, row in zip(labels, pixels, strict=True)
            )
            for name, (labels, pixels) in self.cifar_batches().items()
        }

    def cifar_python(self) -> dict[str, bytes]:
        return {
            name: python2_batch(labels, pixels)
            for name, (labels, pixels) in self.cifar_batches().items()
        }

    def mat(self) -> dict[str, bytes]:
        return {
            "train_32x32.mat": mat(self.train_images, self.train_labels),
            "test_32x32.mat": mat(self.test_images, self.test_labels),
        }

    def npz(self, **test_extras: np.ndarray) -> dict[str, bytes]:
        return {
            "train.npz": npz(images=self.train_images, labels=self.train_labels),
            "test.npz": npz(images=self.test_images, labels=self.test_labels, **test_extras),
        }


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def gzipped(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content) for name, content in contents.items()}


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(
        f">{array.ndim}I", *array.shape
    )
    return header + array.astype(np.uint8).tobytes()


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def mat(images: np.ndarray, labels: np.ndarray) -> bytes:
    """``X`` [32, 32, 3, N] and ``y`` [N, 1], compressed, with 10 for the digit 0, as published."""
    stream = io.BytesIO()
    y = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
    scipy.io.savemat(stream, {"X": images.transpose(1, 2, 3, 0), "y": y}, do_compression=True)
    return stream.getvalue()


def tar_gz(contents: dict[str, bytes], folder: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in {"readme.html": b"<html>", **contents}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def python2_batch(labels: np.ndarray, pixels: np.ndarray) -> bytes:
    """A dict of a batch as Python 2 pickled it (protocol 2), which Python 3 cannot write."""

    def string(value: bytes) -> bytes:  # SHORT_BINSTRING or BINSTRING
        short = len(value) < 256
        return (
            b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))
        ) + value

    def integer(value: int) -> bytes:  # BININT
        return b"J" + struct.pack("<i", value)

    byte_type = (
        b"cnumpy\ndtype\n" + string(b"u1") + integer(0) + integer(1) + b"\x87R"  # dtype("u1", 0, 1)
        b"("
        + integer(3)
        + string(b"|")
        + b"NNN"
        + integer(-1) * 2
        + integer(0)
        + b"tb"  # its state
    )
    shape = integer(pixels.shape[0]) + integer(pixels.shape[1]) + b"\x86"  # TUPLE2
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\n" + integer(0) + b"\x85" + string(b"b") + b"\x87R"
        b"(" + integer(1) + shape + byte_type + b"\x89" + string(pixels.tobytes()) + b"tb"
    )
    entries = (
        string(b"batch_label") + string(b"training batch 1 of 5"),
        string(b"labels") + b"](" + b"".join(integer(int(label)) for label in labels) + b"e",
        string(b"data") + array,
        string(b"filenames") + b"](" + string(b"a.png") * len(labels) + b"e",
    )
    return b"\x80\x02}(" + b"".join(entries) + b"u."
