"""Search for files with the same content, without reading all files."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from spinal.errors import DataError
from spinal.label.store.pictures import open_inside

#: Number of first bytes that are compared before whole files.
_START = 1 << 14
_CHUNK = 1 << 20

Key = TypeVar("Key", bound=Hashable)


class File(NamedTuple):
    """A file of a folder."""

    folder: Path
    name: str


def find_copies(files: Iterable[File], among: Collection[File] | None = None) -> list[list[File]]:
    """Groups of two or more files with the same content.

    Files of the same size are compared by their first bytes, then by a hash of the content. Empty
    files, and files that cannot be read, belong to no group.

    Args:
        files: the files.
        among: only return groups that contain one of these files; all groups by default.
    """
    wanted = None if among is None else set(among)
    groups = [list(files)]
    for key in (_size, _start, _hash):
        groups = [
            group
            for files_alike in groups
            for group in _grouped(files_alike, key)
            if len(group) > 1 and (wanted is None or not wanted.isdisjoint(group))
        ]
    return groups


def _grouped(files: Iterable[File], key: Callable[[File], Key | None]) -> list[list[File]]:
    groups: dict[Key, list[File]] = defaultdict(list)
    for file in files:
        if (value := key(file)) is not None:
            groups[value].append(file)
    return list(groups.values())


def _size(file: File) -> int | None:
    try:
        return os.stat(file.folder / file.name).st_size or None
    except OSError:
        return None


def _start(file: File) -> bytes | None:
    try:
        with open_inside(*file) as opened:
            return opened.read(_START)
    except (DataError, OSError):
        return None


def _hash(file: File) -> bytes | None:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open_inside(*file) as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
    except (DataError, OSError):
        return None
    return digest.digest()
