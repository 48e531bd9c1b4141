"""Images in files, of any size and mode, as points of one shape."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from rich.console import Console
from rich.progress import track

from spinal.data.points import Skipped
from spinal.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")  # only the first frame is used
MAX_BYTES = 1 << 29  # per file: 100 megapixels of 5 bytes
CACHE_BYTES = 1 << 30
MAX_PIXELS = 100_000_000  # a 100-megapixel photograph; beyond that it is a decompression bomb
MAX_SCANS = 100  # per JPEG; each scan visits all pixels, and ten are usual
#: Deflate, the compression of PNG, achieves at most 1032 to 1, and a pixel has at least 1 bit. JPEG
#: needs at least one bit for each block of 64 pixels.
_MOST_PIXELS_PER_BYTE = {"PNG": 8 * 1032, "JPEG": 8 * 64}

Fit = Literal["crop", "pad", "stretch"]
Check = Literal["pixels", "header"]
T = TypeVar("T")


def _scale_crop(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    return ImageOps.fit(image, size, Image.Resampling.BILINEAR)


def _scale_pad(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    return ImageOps.pad(image, size, Image.Resampling.BILINEAR)


def _scale_stretch(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    return image.resize(size, Image.Resampling.BILINEAR)


SCALE: dict[str, Callable[[Image.Image, tuple[int, int]], Image.Image]] = {
    "crop": _scale_crop,
    "pad": _scale_pad,
    "stretch": _scale_stretch,
}


def flatten_mode(image: Image.Image, channels: int) -> Image.Image:
    """Convert an image of any mode to 8-bit grey (1 channel) or RGB (3), on a white background."""
    if image.mode.startswith("I"):
        # 16-bit grey. Pillow's own conversion would clip at 255 rather than scale. Cameras and
        # scanners often use 10, 12 or 14 of the 16 bits.
        pixels = np.asarray(image).astype(np.int64).clip(0, (1 << 16) - 1)
        bits = next(n for n in (8, 10, 12, 14, 16) if pixels.max() < 1 << n)
        image = Image.fromarray((pixels >> (bits - 8)).astype(np.uint8))
    elif image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if channels == 1 else "RGB")


def upright(image: Image.Image) -> Image.Image:
    """Rotate an image according to its EXIF data; return it unchanged if they are damaged."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # the pixels have been read: only the metadata can fail here
        return image


@contextmanager
def open_image(
    source: Path | bytes | BinaryIO, max_pixels: int = MAX_PIXELS
) -> Iterator[Image.Image]:
    """Open an image file, or its content, after a check of its header; nothing is decoded yet.

    Args:
        source: the path of the file, an open file, or its content.
        max_pixels: larger images are refused.

    Raises:
        DataError: if it cannot be read, is not an image, has too many bytes or pixels, or claims
            more pixels than its bytes can hold. Errors of decoding, inside the ``with`` block, are
            raised as DataError too.
    """
    try:
        with _open_file(source) as file:
            size = file.seek(0, os.SEEK_END)
            if size > MAX_BYTES:
                raise DataError(f"{size:,} bytes, more than {MAX_BYTES:,}")
            file.seek(0)
            # Pillow reserves memory for all pixels when it opens a WebP file.
            if webp := webp_size(file.read(30)):
                _check_pixels(*webp, max_pixels)
            file.seek(0)
            image = Image.open(file, formats=FORMATS)
            _check_pixels(image.width, image.height, max_pixels)
            pixels = image.width * image.height
            if pixels > size * _MOST_PIXELS_PER_BYTE.get(str(image.format), pixels):
                raise DataError(
                    f"claims {image.width} x {image.height} pixels, too many for its {size} bytes"
                )
            yield image
    except Exception as error:  # a damaged image can fail in any way
        raise DataError(describe(error)) from error


def _open_file(source: Path | bytes | BinaryIO) -> AbstractContextManager[BinaryIO]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return source.open("rb") if isinstance(source, Path) else nullcontext(source)


def _check_pixels(width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise DataError(f"{width} x {height} pixels, more than {max_pixels:,}")


def webp_size(head: bytes) -> tuple[int, int] | None:
    """Width and height from the first 30 bytes of a WebP file; None for other files."""
    if len(head) < 30 or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None
    if head[12:16] == b"VP8X":  # extended: two 24-bit numbers, minus one
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if head[12:16] == b"VP8L":  # lossless: two 14-bit numbers, minus one
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    # Lossy: two 14-bit numbers, each followed by two bits for its scale.
    width, height = (int.from_bytes(head[i : i + 2], "little") & 0x3FFF for i in (26, 28))
    return width, height


def check_scans(jpeg: bytes) -> None:
    """Refuse a JPEG with so many scans that decoding takes minutes.

    Raises:
        DataError: if it has more than `MAX_SCANS` scans.
    """
    # In compressed data, a byte 0xFF is always followed by 0, so this only occurs before a scan.
    scans = jpeg.count(b"\xff\xda")
    if scans > MAX_SCANS:
        raise DataError(f"a JPEG of {scans} scans, more than {MAX_SCANS}")


def read_image(
    source: Path | bytes, side: int, channels: int = 3, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Decode an image: upright, 8-bit grey or RGB, on a white background.

    Args:
        source: the file, or its content.
        side: a JPEG is decoded at 1/2, 1/4 or 1/8 of its size, which is much faster, as long as
            no side becomes shorter than ``side``.
        channels: 1 for grey, 3 for RGB.
        max_pixels: larger images are refused.

    Raises:
        DataError: see `open_image`.
    """
    with open_image(source, max_pixels) as image:
        if image.format == "JPEG":
            check_scans(source if isinstance(source, bytes) else source.read_bytes())
        # The mode stays: draft and convert round differently when they turn colour into grey.
        image.draft(None, (side, side))
        image.load()
        return flatten_mode(upright(image), channels)


class ImageFiles:
    """Points that are image files, decoded in threads when a batch is requested.

    Files that cannot be read get no index. They are listed in ``skipped``.

    Args:
        paths: The files, of one of the `FORMATS`, in the order of their indices.
        size: (H, W) of every image after scaling; one number for squares.
        channels: 3 for RGB, 1 for grey.
        fit: How an image is brought to this shape: "crop" its longer side, "pad" its shorter side
            with black, or "stretch".
        check: How files are checked once, at the start. "pixels" decodes each file. "header" reads
            only its first bytes; a batch with a file that is damaged later raises.
        cache: Whether to keep decoded images in memory, since a pool is read in every round. By
            default, they are kept if all of them together take less than 1 GiB.
        threads: Number of decoding threads; by default, the number of processors.
        max_pixels: Larger images are refused before they are decoded.

    Attributes:
        paths: The N files that can be read.
        shape: (N, H, W, C).
        readable: int64 array [N], the position of each of these files in the argument ``paths``.
        skipped: The other files, each with the reason.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        size: int | tuple[int, int] = 32,
        channels: int = 3,
        fit: Fit = "crop",
        check: Check = "pixels",
        cache: bool | None = None,
        threads: int | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        height, width = (size, size) if isinstance(size, int) else size
        if min(height, width) < 1:
            raise DataError(f"images of {height} x {width} pixels: give a size of at least 1")
        if channels not in (1, 3):
            raise DataError(f"{channels} channels: give 1 (grey) or 3 (RGB)")
        if fit not in SCALE:
            raise DataError(f"fit={fit!r}: give one of {', '.join(SCALE)}")
        if check not in ("pixels", "header"):
            raise DataError(f"check={check!r}: give 'pixels' or 'header'")
        self.threads = threads or os.cpu_count() or 1
        self._max_pixels = max_pixels
        self._fit, self._point = fit, (height, width, channels)
        shape = (len(paths), *self._point)
        if cache is None:
            cache = math.prod(shape) < CACHE_BYTES
        # Memory that has not been touched yet costs nothing.
        self._cache = np.empty(shape, np.uint8) if cache else None
        self._cached = np.zeros(len(paths), bool)
        self.paths: tuple[Path, ...] = ()
        self.readable, self.skipped = self._check(paths, check)
        self.paths = tuple(paths[i] for i in self.readable)
        self.shape: tuple[int, ...] = (len(self.paths), *self._point)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The batch [B, H, W, C]; `DataError`, with the path, if a file cannot be read."""
        indices = np.asarray(indices, np.int64)
        indices = np.arange(len(self))[indices]  # raises if an index is out of range
        todo = np.unique(indices[~self._cached[indices]])
        decoded: dict[int, NDArray[np.uint8]] = {}
        results = self._map(self._try_decode, [self.paths[i] for i in todo])
        for i, result in zip(todo.tolist(), results, strict=True):
            if isinstance(result, Skipped):
                raise DataError(f"{result.path}: cannot be read: {result.reason}")
            if self._cache is None:
                decoded[i] = result
            else:
                self._cache[i], self._cached[i] = result, True
        if self._cache is not None:
            return self._cache[indices]
        batch = np.empty((len(indices), *self.shape[1:]), np.uint8)
        for row, i in enumerate(indices.tolist()):
            batch[row] = decoded[i]
        return batch

    def _check(
        self, paths: Sequence[Path], check: Check
    ) -> tuple[NDArray[np.int64], tuple[Skipped, ...]]:
        """Positions of readable files, and the other files; images decoded here are cached."""
        readable: list[int] = []
        skipped: list[Skipped] = []
        read = self._try_decode if check == "pixels" else self._try_header
        console = Console(stderr=True)
        for start in track(
            range(0, len(paths), 256),
            description="Checking images",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ):
            results = self._map(read, paths[start : start + 256])
            for i, result in enumerate(results, start):
                if isinstance(result, Skipped):
                    skipped.append(result)
                    continue
                if self._cache is not None and result is not None:
                    self._cache[len(readable)], self._cached[len(readable)] = result, True
                readable.append(i)
        return np.array(readable, np.int64), tuple(skipped)

    def _map(self, function: Callable[[Path], T], paths: Sequence[Path]) -> list[T]:
        if self.threads == 1 or len(paths) < 2:
            return [function(path) for path in paths]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(function, paths))

    def _try_decode(self, path: Path) -> NDArray[np.uint8] | Skipped:
        height, width, channels = self._point
        try:
            # Decoded at twice the size, so that the scaling that follows loses nothing.
            image = read_image(path, 2 * max(height, width), channels, self._max_pixels)
            pixels = np.asarray(SCALE[self._fit](image, (width, height)))
        except Exception as error:
            return Skipped(path, describe(error))
        return pixels.reshape(self._point)

    def _try_header(self, path: Path) -> Skipped | None:
        try:
            with open_image(path, self._max_pixels):
                return None
        except DataError as error:
            return Skipped(path, str(error))


def describe(error: Exception) -> str:
    """Why a file cannot be used, in a few words and without its path."""
    if isinstance(error, UnidentifiedImageError):
        return "not a PNG, JPEG, WebP, GIF, BMP or TIFF image"
    if isinstance(error, MemoryError):
        return "takes too much memory to be decoded"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
