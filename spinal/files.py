"""Atomic files: written under another name in the same folder, flushed, then renamed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from spinal.errors import FileFormatError

if sys.version_info >= (3, 11):
    import tomllib as tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

#: The file of checksums in a folder, as the command ``sha256sum`` writes and checks it.
CHECKSUMS = "SHA256SUMS"

#: Takes the place of the checksum in the head of a safetensors file while it is computed.
_UNSIGNED = "0" * 64

#: The errors that numpy raises for a truncated or damaged file of arrays.
_DAMAGE = (
    OSError, EOFError, ValueError, KeyError, NotImplementedError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to the yielded path inside the ``with`` block; at the end it replaces ``path``."""
    partial = _beside(path, ".part")
    yield partial
    _flush(partial)
    os.replace(partial, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Write to the yielded folder inside the ``with`` block; at the end it replaces ``folder``.

    It gets a ``SHA256SUMS`` for `verify_checksums`. Two renames are needed. If the process ends
    between them, `existing_folder` finds the old folder.
    """
    partial, old = _beside(folder, ".part"), _beside(folder, ".old")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    write_checksums(partial)
    for file in partial.iterdir():
        _flush(file)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def existing_folder(folder: Path) -> Path:
    """The folder, or its old version if the process ended while it was replaced."""
    old = _beside(folder, ".old")
    return old if not folder.exists() and old.exists() else folder


def _flush(path: Path) -> None:
    """Wait until a file is on disk. Windows does not allow this for files opened for reading."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write a ``.npz`` file."""
    import numpy as np  # slow to import, and not needed for text files

    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        FileFormatError: If it is damaged.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileFormatError(f"{path}: damaged ({error}); delete it") from error


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file in a folder into its ``SHA256SUMS``."""
    lines = [f"{_sha256(path)}  {path.name}\n" for path in _listed(folder)]
    write_text(folder / CHECKSUMS, "".join(lines))


def verify_checksums(folder: Path) -> None:
    """Check the files in a folder against its ``SHA256SUMS``.

    Raises:
        FileFormatError: If a file was damaged, added or lost. The message names it.
    """
    path = folder / CHECKSUMS
    if not path.exists():
        raise FileFormatError(f"{folder}: damaged (there is no {CHECKSUMS}); delete it")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    expected = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    actual = {file.name: _sha256(file) for file in _listed(folder)}
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            raise FileFormatError(
                f"{folder / name}: damaged (its checksum is not the one in {CHECKSUMS}); "
                f"delete {folder}"
            )


def _listed(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != CHECKSUMS)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_arrays(
    path: Path, names: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, NDArray]:
    """Read arrays of a ``.npz`` file, and optional ones if they exist. Nothing is unpickled.

    Raises:
        FileFormatError: if the file or an array is missing, or the file is damaged.
    """
    import numpy as np  # slow to import, and not needed for text files

    try:
        with np.load(path, allow_pickle=False) as arrays:
            there = [name for name in optional if name in arrays]
            return {name: arrays[name] for name in (*names, *there)}
    except _DAMAGE as error:
        raise FileFormatError(f"{path}: damaged ({error}); delete it") from error


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], kind: str, header: Mapping[str, Any]
) -> None:
    """Write a safetensors file, with ``kind`` and ``header``, as JSON, in its head.

    The head also holds a SHA-256 checksum of the file, computed with zeros in its place.
    """
    from safetensors.torch import save_file  # imported here, because torch is slow to import

    # Copies, because safetensors refuses tensors that share memory.
    copies = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    with replacing(path) as partial:
        metadata = {"format": kind, "header": json.dumps(header), "sha256": _UNSIGNED}
        save_file(copies, partial, metadata=metadata)
        sign_tensors(partial, _UNSIGNED)


def sign_tensors(path: Path, said: str) -> None:
    """Replace the checksum in the head of a safetensors file by the checksum of its content."""
    content = path.read_bytes()
    path.write_bytes(content.replace(said.encode(), _checksum(content, said).encode(), 1))


def check_tensors(path: Path, metadata: Mapping[str, str]) -> None:
    """Compare a safetensors file with the checksum in its head, if there is one.

    Raises:
        FileFormatError: if they differ.
    """
    said = metadata.get("sha256")
    if said is not None and _checksum(path.read_bytes(), said) != said:
        raise FileFormatError(f"{path}: damaged (its checksum is not the one in its head)")


def _checksum(content: bytes, said: str) -> str:
    return hashlib.sha256(content.replace(said.encode(), _UNSIGNED.encode(), 1)).hexdigest()


def read_tensors(path: Path, kind: str, *earlier: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file that `write_tensors` wrote. Nothing is unpickled.

    Args:
        path: the file.
        kind: its format.
        earlier: earlier formats that are accepted, too.

    Raises:
        FileFormatError: if the file is missing, damaged, or not of these kinds.
    """
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"{path}: not a safetensors file, or damaged ({error})") from error
    if metadata.get("format") not in (kind, *earlier):
        what = kind.partition("/")[0].replace(".", " ")
        raise FileFormatError(
            f"{path}: a safetensors file, but not a {what} "
            f"(expected format {kind!r}, found {metadata.get('format')!r})"
        )
    check_tensors(path, metadata)
    try:
        return dict(json.loads(metadata["header"])), tensors
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"{path}: its header is damaged ({error})") from error
