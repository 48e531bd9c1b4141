"""Readers of the files in which datasets are published.

Every reader returns complete, checked arrays or raises `FileFormatError`, which names the file and
says what was expected. Images are uint8 arrays [N, H, W, C], labels int64 arrays [N]. IDX files
that are not compressed stay on disk, memory-mapped.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.data.matlab import read_matlab
from spinal.data.pickles import load_plain_pickle
from spinal.errors import FileFormatError

CIFAR_SHAPE = (3, 32, 32)  # planes of red, green, blue
CIFAR_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class DataFile:
    """A file on disk, and the expected size and MD5 of its (decompressed) content."""

    path: Path
    md5: str | None = None
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """Images [N, H, W, C], labels [N], and any further arrays of a file, one entry per image."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    extras: dict[str, NDArray] = field(default_factory=dict)


def read_content(file: DataFile, decompress: bool = True) -> NDArray[np.uint8]:
    """All bytes of a file: memory-mapped, or decompressed if its name ends in ``.gz``."""
    try:
        if decompress and file.path.suffix == ".gz":
            content = np.frombuffer(gzip.decompress(file.path.read_bytes()), np.uint8)
        elif file.path.stat().st_size == 0:  # which cannot be mapped
            content = np.empty(0, np.uint8)
        else:
            content = np.asarray(np.memmap(file.path, np.uint8, mode="r"))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{file.path}: truncated or corrupt gzip file ({error})") from error
    except OSError as error:
        raise FileFormatError(f"{file.path}: cannot be read ({error.strerror})") from error
    if file.size is not None and content.size != file.size:
        raise FileFormatError(f"{file.path}: {content.size:,} bytes, expected {file.size:,}")
    if file.md5 is not None:
        md5 = hashlib.md5(content.data, usedforsecurity=False).hexdigest()
        if md5 != file.md5:
            raise FileFormatError(f"{file.path}: MD5 {md5}, expected {file.md5}")
    return content


def parse_idx(content: NDArray[np.uint8], where: str | Path) -> NDArray[np.uint8]:
    """The array in an IDX file of unsigned bytes, in the shape that its header gives.

    The header is 0, 0, 8 (unsigned byte), the number of axes, then the length of each axis as a
    big-endian 32-bit integer.
    """
    if content.size < 4 or content[:3].tolist() != [0, 0, 8]:
        raise FileFormatError(
            f"{where}: not an IDX file of unsigned bytes: starts with "
            f"{content[:4].tobytes().hex() or 'nothing'}, expected 000008"
        )
    start = 4 + 4 * int(content[3])
    if content.size < start:
        raise FileFormatError(f"{where}: {content.size} bytes, expected a header of {start}")
    shape = tuple(int(n) for n in np.frombuffer(content[4:start].tobytes(), ">u4"))
    expected = start + math.prod(shape)
    if content.size != expected:
        raise FileFormatError(
            f"{where}: {content.size:,} bytes, expected {expected:,} for shape {shape}"
        )
    return content[start:].reshape(shape)


def read_idx(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """The format of MNIST: training images, training labels, test images, test labels."""
    arrays = [parse_idx(read_content(file), file.path) for file in files]
    return (
        make_part(arrays[0], arrays[1], files[0].path),
        make_part(arrays[2], arrays[3], files[2].path),
    )


def parse_cifar_binary(
    content: NDArray[np.uint8], where: str | Path
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Labels [N] and pixels [N, 3072] of a batch of records: one byte of label, 3,072 of pixels."""
    if content.size == 0 or content.size % (1 + CIFAR_PIXELS):
        raise FileFormatError(
            f"{where}: {content.size:,} bytes, expected a multiple of {1 + CIFAR_PIXELS:,}"
        )
    records = content.reshape(-1, 1 + CIFAR_PIXELS)
    return records[:, 0], records[:, 1:]


def parse_cifar_python(
    content: NDArray[np.uint8], where: str | Path
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Labels [N] and pixels [N, 3072] of a pickled batch, read without running anything in it."""
    batch = load_plain_pickle(content.tobytes(), where)
    if not isinstance(batch, dict):
        raise FileFormatError(f"{where}: holds a {type(batch).__name__}, expected a dict")
    # Python 2 wrote these files: the keys are bytes. A file rewritten by Python 3 has str keys.
    entries = {k.decode("latin-1") if isinstance(k, bytes) else k: v for k, v in batch.items()}
    pixels, labels = entries.get("data"), entries.get("labels")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise FileFormatError(f"{where}: 'data' is not an array of N x {CIFAR_PIXELS} bytes")
    if pixels.shape[1] != CIFAR_PIXELS:
        raise FileFormatError(f"{where}: {pixels.shape[1]} bytes an image, not {CIFAR_PIXELS}")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise FileFormatError(f"{where}: 'labels' is not a list of integers")
    return np.array(labels, np.int64), pixels


def _join_cifar(batches: Sequence[tuple[NDArray, NDArray[np.uint8]]], where: str | Path) -> Part:
    images = np.empty((sum(len(pixels) for _, pixels in batches), 32, 32, 3), np.uint8)
    views = [pixels.reshape(-1, *CIFAR_SHAPE).transpose(0, 2, 3, 1) for _, pixels in batches]
    np.concatenate(views, out=images)
    return make_part(images, np.concatenate([labels for labels, _ in batches]), where)


def read_cifar_binary(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """CIFAR-10, binary version: the training batches, then the test batch."""
    batches = [parse_cifar_binary(read_content(file), file.path) for file in files]
    return _join_cifar(batches[:-1], files[0].path), _join_cifar(batches[-1:], files[-1].path)


def read_cifar_python(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """CIFAR-10, Python version: the training batches, then the test batch."""
    batches = [parse_cifar_python(read_content(file), file.path) for file in files]
    return _join_cifar(batches[:-1], files[0].path), _join_cifar(batches[-1:], files[-1].path)


def read_cifar_archive(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """CIFAR-10 as the published ``.tar.gz`` of either version, not unpacked on disk."""
    (file,) = files
    read_content(file, decompress=False)  # the checksum is for the archive itself
    batch_of: dict[str, tuple[NDArray, NDArray[np.uint8]]] = {}
    try:
        with tarfile.open(file.path, "r:gz") as archive:
            for member in archive:
                name = Path(member.name).name
                stem = name.removesuffix(".bin")
                if not member.isfile() or not stem.startswith(("data_batch_", "test_batch")):
                    continue
                stream = archive.extractfile(member)
                assert stream is not None  # a regular file, as checked
                content = np.frombuffer(stream.read(), np.uint8)
                parse = parse_cifar_binary if name.endswith(".bin") else parse_cifar_python
                batch_of[stem] = parse(content, f"{file.path}: {member.name}")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise FileFormatError(f"{file.path}: truncated or corrupt archive ({error})") from error
    expected = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    if missing := [name for name in expected if name not in batch_of]:
        raise FileFormatError(f"{file.path}: {', '.join(missing)} expected in the archive")
    batches = [batch_of[name] for name in expected]
    return _join_cifar(batches[:-1], file.path), _join_cifar(batches[-1:], file.path)


def read_svhn_mat(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """SVHN's cropped digits, MATLAB: ``X [32, 32, 3, N]``, ``y [N, 1]`` from 1 to 10."""
    train, test = (_read_mat_part(file) for file in files)
    return train, test


def _read_mat_part(file: DataFile) -> Part:
    variables = read_matlab(read_content(file), ("X", "y"), file.path)
    if missing := [name for name in ("X", "y") if name not in variables]:
        raise FileFormatError(f"{file.path}: no variable {missing[0]!r}, expected X and y")
    images, labels = variables["X"], variables["y"].ravel()
    if images.ndim != 4:
        raise FileFormatError(f"{file.path}: X has shape {images.shape}, expected (32, 32, 3, N)")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise FileFormatError(f"{file.path}: y holds labels other than 1..10")
    # 10 stands for the digit 0. N is the slowest axis in the file, so indexing the view is fast.
    return make_part(images.transpose(3, 0, 1, 2), labels % 10, file.path)


def read_npz(files: Sequence[DataFile]) -> tuple[Part, Part]:
    """One ``.npz`` per part: ``images``, ``labels``; other arrays of length N become extras."""
    train, test = (_read_npz_part(file) for file in files)
    return train, test


def _read_npz_part(file: DataFile) -> Part:
    try:
        with np.load(file.path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # NumPy too
        raise FileFormatError(f"{file.path}: truncated or corrupt .npz file ({error})") from error
    if missing := [name for name in ("images", "labels") if name not in arrays]:
        raise FileFormatError(f"{file.path}: no array {' nor '.join(missing)}")
    return make_part(arrays.pop("images"), arrays.pop("labels"), file.path, arrays)


def npz_shape(path: Path, name: str = "images") -> tuple[int, ...] | None:
    """Shape of an array in an ``.npz`` file, from its header; None if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                return np.lib.format.read_array_header_1_0(stream)[0]
            return np.lib.format.read_array_header_2_0(stream)[0]
    except Exception:
        return None


def make_part(
    images: NDArray, labels: NDArray, where: str | Path, extras: dict[str, NDArray] | None = None
) -> Part:
    """Check types and shapes of the arrays, and return them as a `Part`."""
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise FileFormatError(
            f"{where}: images are {images.dtype} of shape {images.shape}, "
            "expected uint8 of shape (N, H, W) or (N, H, W, C)"
        )
    if images.ndim == 3:
        images = images[..., None]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise FileFormatError(f"{where}: labels are {labels.dtype} of shape {labels.shape}")
    for name, array in {"labels": labels, **(extras or {})}.items():
        if array.ndim == 0 or len(array) != len(images):
            raise FileFormatError(
                f"{where}: {len(images):,} images, but {name} of shape {array.shape}"
            )
    return Part(images, labels.astype(np.int64), extras or {})
