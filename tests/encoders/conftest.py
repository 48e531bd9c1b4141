"""Small image files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spinal.encoders import ImageEncoder, load_encoder


@pytest.fixture(scope="session")
def pixels() -> ImageEncoder:
    return load_encoder("pixels", device="cpu")


@pytest.fixture
def photographs(tmp_path: Path) -> list[Path]:
    """Twenty different images, of several sizes, formats and modes."""
    generator = np.random.default_rng(0)
    folder = tmp_path / "photographs"
    folder.mkdir()
    paths = []
    for i in range(20):
        shape = (20 + i, 30, 4 if i % 5 == 0 else 3)
        suffix = "png" if i % 5 == 0 else ("png", "jpg", "webp")[i % 3]
        paths.append(folder / f"{i:02}.{suffix}")
        Image.fromarray(generator.integers(0, 256, shape, np.uint8)).save(paths[-1])
    return paths
