"""Pools in tar files, as WebDataset writes them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError
from spinal.ranking.shards import ITEMS, Batch, Columns, Items

_IMAGES = ("jpg", "jpeg", "png", "webp", "bmp", "gif")
_KINDS = (*_IMAGES, "txt", "npy")


class TarFiles:
    """Files in a tar file, each an image, a text (``.txt``) or a vector (``.npy``).

    The file name up to its first dot is the name of the point. Other files of the same name, such
    as ``.json`` and ``.cls``, are ignored. A tar file is read sequentially, so it is one shard.
    """

    def cuts(self, path: Path, rows: int, columns: Columns) -> list[int]:
        return [0, sum(1 for _ in _members(path, columns, False))]

    def read(
        self, path: Path, start: int, stop: int, rows: NDArray[np.int64] | None, columns: Columns
    ) -> Iterator[Batch]:
        if columns.ids is not None:
            raise DataError(f"{path}: the names of files are the names of points; leave out --id")
        wanted = None if rows is None else set(rows.tolist())
        numbers: list[int] = []
        names: list[str] = []
        contents: list[bytes] = []
        kind = ""
        for row, (name, kind, content) in enumerate(_members(path, columns, True, wanted)):
            if wanted is None or row in wanted:
                numbers.append(row)
                names.append(name)
                contents.append(content)
            if len(numbers) == ITEMS:
                yield Batch(np.array(numbers), _items(path, kind, contents), names)
                numbers, names, contents = [], [], []
        if numbers:
            yield Batch(np.array(numbers), _items(path, kind, contents), names)


def _members(
    path: Path, columns: Columns, contents: bool, wanted: set[int] | None = None
) -> Iterator[tuple[str, str, bytes]]:
    """Name, extension and content of the points in a tar file."""
    allowed = tuple(each.lstrip(".").lower() for each in columns.items) or _KINDS
    first = ""
    row = 0
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                folder, base = PurePosixPath(member.name).parent, PurePosixPath(member.name).name
                name, _, kind = base.partition(".")
                kind = kind.lower()
                if not member.isfile() or kind not in allowed or not name:
                    continue
                first = first or kind
                if _family(kind) != _family(first):
                    raise DataError(
                        f"{path}: holds .{first} and .{kind} files: choose with --column {first}"
                    )
                file = tar.extractfile(member) if contents else None
                is_read = file is not None and (wanted is None or row in wanted)
                yield str(folder / name), kind, file.read() if file and is_read else b""
                row += 1
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{path}: not a tar file, or damaged ({error})") from error


def _family(kind: str) -> str:
    return "image" if kind in _IMAGES else kind


def _items(path: Path, kind: str, contents: list[bytes]) -> Items:
    if kind == "npy":
        try:
            arrays = [np.load(io.BytesIO(each), allow_pickle=False) for each in contents]
            stacked = np.stack(arrays)
        except (ValueError, EOFError, OSError) as error:
            raise DataError(
                f"{path}: its .npy files are not vectors of equal length ({error})"
            ) from error
        return stacked if stacked.ndim == 4 else stacked.astype(np.float32)
    if kind == "txt":
        return [each.decode("utf-8", "replace") for each in contents]
    return contents
