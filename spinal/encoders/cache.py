"""The features of image files, computed once and kept: by content, wherever the files are."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from spinal.data import Skipped
from spinal.data.images import FORMATS, MAX_PIXELS, check_claim, check_pixels, describe
from spinal.encoders.backbone import Backbone, RawImages
from spinal.encoders.vectors import Entry, FileState, StoredVectors, Vectors, content_hash
from spinal.errors import DataError

MAX_BYTES = 1 << 29  # of a file: 100 megapixels of 5 bytes


def vectors_of(folder: str | Path, backbone: Backbone | RawImages) -> Vectors:
    """Where a backbone keeps its features: a folder of its own inside of ``folder``."""
    plain = re.sub(r"[^a-z0-9.]+", "-", backbone.name.lower())[-60:].strip("-.")
    place = Path(folder) / f"{plain}-{backbone.fingerprint}"
    return Vectors(place, backbone.features, backbone.dtype)


def decode(
    data: bytes, backbone: Backbone | RawImages, max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """The content of an image file as the backbone wants it, uint8 ``[S, S, 3]``.

    Raises:
        DataError: if it is not an image, damaged, too large, or has fewer bytes than its size
            would need; the last two by its header, before anything is decoded.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            check_pixels(image, max_pixels)
            check_claim(image, len(data))
            # JPEG can decode at 1/2, 1/4, 1/8 of its size: much faster, and twice the size is kept.
            image.draft(None, (2 * backbone.size, 2 * backbone.size))
            image.load()
            return backbone.prepare(image)
    except UnidentifiedImageError as error:
        raise DataError("not a PNG, JPEG or WebP image") from error
    except Exception as error:  # a damaged image can fail in any way
        raise DataError(str(error) or type(error).__name__) from error


class FeatureCache:
    """The features of image files under one backbone, on disk.

    Safe against being killed at any moment, and for several processes; see `Vectors`.

    Args:
        folder: where they are kept; each backbone has a folder of its own in it.
        backbone: what computes them.
        max_pixels: larger images are refused by their header, before they are decoded.
        threads: how many to decode with; by default, as many as there are processors.
    """

    def __init__(
        self,
        folder: str | Path,
        backbone: Backbone | RawImages,
        *,
        max_pixels: int = MAX_PIXELS,
        threads: int | None = None,
    ) -> None:
        self.backbone = backbone
        self.vectors = vectors_of(folder, backbone)
        self._max_pixels = max_pixels
        self._threads = threads or os.cpu_count() or 1

    def close(self) -> None:
        """Let go of the files."""
        self.vectors.close()

    def compute(
        self,
        paths: Iterable[str | Path],
        on_progress: Callable[[int, int], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        batch: int = 32,
    ) -> list[Skipped]:
        """Compute what is missing, in the order given; a batch can be read once it is done.

        Args:
            paths: image files. One that has the size and the time of modification that it had
                when it was last read is not read again.
            on_progress: called with the number of files done, and of all.
            should_stop: asked before every batch.
            batch: files at a time.

        Returns:
            The files that cannot be used, and why.
        """
        known = [(Path(path), self._find(Path(path))) for path in paths]
        todo = [path for path, entry in known if entry is None]
        skipped = [Skipped(path, entry.reason) for path, entry in known if entry and entry.reason]
        done, total = len(known) - len(todo), len(known)
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
        """The features that are there, ``[M, D]``, and which of the paths have them, ``[N]``.

        All at once, in memory: for many files, `points` is the better choice.
        """
        points, there = self.points(paths)
        return points[np.arange(len(points))], there

    def points(self, paths: Iterable[str | Path]) -> tuple[StoredVectors, NDArray[np.bool_]]:
        """As `get`, but left on disk and read in batches: M points for a `spinal.data.Pool`."""
        found = (self._find(Path(path)) for path in paths)
        places = [-1 if e is None or e.place is None else e.place for e in found]
        places_N = np.array(places, np.int64)
        there = places_N >= 0
        return StoredVectors(self.vectors, places_N[there]), there

    def _find(self, path: Path) -> Entry | None:
        try:
            return self.vectors.find_file(_state(path))
        except OSError:  # it is gone, or may not be looked at
            return None

    def _keep(self, files: Sequence[_Read]) -> list[Skipped]:
        """Compute the features of new contents and keep them; return what cannot be used."""
        new = {f.content: f.pixels for f in files if f.content and f.pixels is not None}
        refused = {f.content: f.reason for f in files if f.content and f.reason}
        vectors = np.empty((0, self.backbone.features), self.backbone.dtype)
        if new:
            vectors = self.backbone.embed(np.stack(list(new.values())))
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
        """Read files in threads, in order, at most ``ahead`` more than were asked for."""
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
        """Read a file, once: the bytes that are hashed are the bytes that are decoded."""
        try:
            state = _state(path)
            if state.size > MAX_BYTES:
                raise DataError(f"{state.size:,} bytes, more than {MAX_BYTES:,}")
            data = path.read_bytes()
        except (OSError, DataError) as error:
            return _Read(path, reason=describe(error, path))
        content = content_hash(data)
        entry = self.vectors.find(content)
        if entry is not None:
            return _Read(path, state, content, reason=entry.reason)
        try:
            pixels = decode(data, self.backbone, self._max_pixels)
        except DataError as error:
            return _Read(path, state, content, reason=str(error))
        return _Read(path, state, content, pixels=pixels)


@dataclass(frozen=True)
class _Read:
    """A file as it was read: pixels if the content is new, a reason if it cannot be used."""

    path: Path
    state: FileState | None = None
    content: bytes | None = None
    pixels: NDArray[np.uint8] | None = None
    reason: str | None = None


def _state(path: Path) -> FileState:
    stat = path.stat()
    return FileState(os.fsencode(os.path.abspath(path)), stat.st_size, stat.st_mtime_ns)
