"""Folders of small images for tests."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

#: Class by class, the colour that images of it have more or less of.
COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


def make_images(folder: Path, n: int = 40, size: int = 24, seed: int = 0) -> dict[str, str]:
    """Noisy patches of three colours; the class of each name."""
    rng = np.random.default_rng(seed)
    labels = {}
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        label = list(COLOURS)[i % 3]
        pixels = np.array(COLOURS[label]) + rng.normal(0, 40, (size, size, 3))
        name = f"image-{i:04}.png"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
        labels[name] = label
    return labels


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG file of a hundred bytes that says it has so many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 64))
        + chunk(b"IEND", b"")
    )
