"""The vectors of files, computed once and stored by content, so that files can be moved."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinal.data import Skipped
from spinal.data.images import MAX_BYTES, describe
from spinal.encoders.encoder import BATCH, Encoder
from spinal.encoders.vectors import Entry, FileState, StoredVectors, Vectors, content_hash
from spinal.errors import DataError


def vectors_of(folder: str | Path, encoder: Encoder, dtype: DTypeLike = "<f4") -> Vectors:
    """The stored vectors of an encoder, in its own sub-folder of ``folder``."""
    plain = re.sub(r"[^a-z0-9.]+", "-", encoder.name.lower())[-60:].strip("-.")
    place = Path(folder) / f"{plain}-{encoder.fingerprint}"
    return Vectors(place, encoder.width, np.dtype(dtype))


class FeatureCache:
    """The vectors of files by one encoder, on disk.

    The process can be killed at any moment, and several processes can share the folder; see
    `Vectors`.

    Args:
        folder: where vectors are stored, in one sub-folder per encoder.
        encoder: computes the vectors.
        dtype: type of the numbers on disk: float32, or uint8 for integers from 0 to 255.
        threads: number of threads that prepare files; by default, the number of processors.
    """

    def __init__(
        self,
        folder: str | Path,
        encoder: Encoder,
        *,
        dtype: DTypeLike = "<f4",
        threads: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.vectors = vectors_of(folder, encoder, dtype)
        self._threads = threads or os.cpu_count() or 1

    def close(self) -> None:
        """Close the files."""
        self.vectors.close()

    def compute(
        self,
        paths: Iterable[str | Path],
        on_progress: Callable[[int, int], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        batch: int = BATCH,
    ) -> list[Skipped]:
        """Compute missing vectors, in the order of ``paths``; each batch is stored when it is done.

        Args:
            paths: the files. A file whose size and modification time have not changed since it was
                last read is not read again.
            on_progress: called with the number of files done and the total number of files.
            should_stop: called before every batch.
            batch: files per batch.

        Returns:
            The files that cannot be used, each with the reason.
        """
        entries = [(Path(path), self._find(Path(path))) for path in paths]
        todo = [path for path, entry in entries if entry is None]
        skipped = [Skipped(path, entry.reason) for path, entry in entries if entry and entry.reason]
        done, total = len(entries) - len(todo), len(entries)
        if on_progress is not None:
            on_progress(done, total)
        reading = self._read_all(todo, ahead=2 * batch)
        try:
            while should_stop is None or not should_stop():
                files = list(islice(reading, batch))
                if not files:
                    break
                skipped += self._keep(files)
                done += len(files)
                if on_progress is not None:
                    on_progress(done, total)
        finally:
            reading.close()
        return skipped

    def get(self, paths: Iterable[str | Path]) -> tuple[NDArray, NDArray[np.bool_]]:
        """The stored vectors ``[M, D]``, and which of the N paths have one, bool ``[N]``.

        All vectors are read into memory. For many files, use `points`.
        """
        points, is_stored = self.points(paths)
        return points[np.arange(len(points))], is_stored

    def points(self, paths: Iterable[str | Path]) -> tuple[StoredVectors, NDArray[np.bool_]]:
        """Like `get`, but vectors stay on disk and are read in batches, as a pool's points."""
        entries = (self._find(Path(path)) for path in paths)
        places = [-1 if e is None or e.place is None else e.place for e in entries]
        places_N = np.array(places, np.int64)
        is_stored = places_N >= 0
        return StoredVectors(self.vectors, places_N[is_stored]), is_stored

    def _find(self, path: Path) -> Entry | None:
        try:
            return self.vectors.find_file(_state(path))
        except OSError:  # deleted, or not readable
            return None

    def _keep(self, files: Sequence[_Read]) -> list[Skipped]:
        """Compute and store the vectors of new contents; return the files that cannot be used."""
        new = {f.content: f.prepared for f in files if f.content and f.prepared is not None}
        refused = {f.content: f.reason for f in files if f.content and f.reason}
        vectors = np.empty((0, self.encoder.width), np.float32)
        if new:
            vectors = self.encoder.embed(list(new.values()))
        finite = np.array([np.isfinite(vector).all() for vector in vectors], bool)
        for content, good in zip(new, finite, strict=True):
            if not good:
                refused[content] = "its features are not finite numbers"
        self.vectors.add(
            [content for content, good in zip(new, finite, strict=True) if good],
            vectors[finite],
            refused.items(),
            [(f.state, f.content) for f in files if f.state and f.content],
        )
        reasons = [f.reason or refused.get(f.content or b"") for f in files]
        return [Skipped(f.path, why) for f, why in zip(files, reasons, strict=True) if why]

    def _read_all(self, paths: Sequence[Path], ahead: int) -> Generator[_Read, None, None]:
        """Read files in threads, in order, at most ``ahead`` files in advance."""
        pool = ThreadPoolExecutor(self._threads)
        waiting: deque[Future[_Read]] = deque()
        try:
            for path in paths:
                waiting.append(pool.submit(self._read, path))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _read(self, path: Path) -> _Read:
        """Read a file once, so that the hashed bytes are the bytes that are prepared."""
        try:
            state = _state(path)
            if state.size > MAX_BYTES:
                raise DataError(f"{state.size:,} bytes, more than {MAX_BYTES:,}")
            data = path.read_bytes()
        except (OSError, DataError) as error:
            return _Read(path, reason=describe(error))
        content = content_hash(data)
        entry = self.vectors.find(content)
        if entry is not None:
            return _Read(path, state, content, reason=entry.reason)
        try:
            prepared = self.encoder.prepare(data)
        except DataError as error:
            return _Read(path, state, content, reason=str(error))
        return _Read(path, state, content, prepared=prepared)


@dataclass(frozen=True)
class _Read:
    """A file after reading: prepared if its content is new, with a reason if it cannot be used."""

    path: Path
    state: FileState | None = None
    content: bytes | None = None
    prepared: Any = None
    reason: str | None = None


def _state(path: Path) -> FileState:
    stat = path.stat()
    return FileState(os.fsencode(os.path.abspath(path)), stat.st_size, stat.st_mtime_ns)
