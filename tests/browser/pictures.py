"""Landscapes with a house, a tree, a boat, or nothing in them: drawn, not photographed."""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ("boat", "house", "tree", "none")
_SIDE = 480


def make_pictures(folder: Path, n: int, seed: int = 0, size: int = 320) -> dict[str, str]:
    """Draw ``n`` pictures into a folder; the class of each name."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    labels = {}
    for i in range(n):
        label = CLASSES[int(rng.integers(len(CLASSES)))]
        name = f"landscape-{i:04}.jpg"
        _draw(label, rng).resize((size, size * 3 // 4)).save(folder / name, quality=88)
        labels[name] = label
    return labels


def _colour(rng: np.random.Generator, hue: float, light: float, strength: float) -> tuple:
    h = (hue + rng.normal(0, 0.02)) % 1
    rgb = colorsys.hls_to_rgb(h, float(np.clip(light + rng.normal(0, 0.05), 0, 1)), strength)
    return tuple(int(255 * c) for c in rgb)


def _draw(label: str, rng: np.random.Generator) -> Image.Image:
    width, height = _SIDE, _SIDE * 3 // 4
    top = np.array(_colour(rng, rng.choice([0.55, 0.6, 0.05, 0.08]), 0.55, 0.6))
    bottom = np.array(_colour(rng, rng.choice([0.1, 0.55, 0.58]), 0.85, 0.5))
    share = np.linspace(0, 1, height)[:, None, None]
    sky = np.broadcast_to(top * (1 - share) + bottom * share, (height, width, 3))
    image = Image.fromarray(sky.astype(np.uint8))
    pen = ImageDraw.Draw(image)
    horizon = int(height * rng.uniform(0.55, 0.7))
    x, y = rng.uniform(0.15, 0.85) * width, rng.uniform(0.1, 0.35) * height
    pen.ellipse((x - 22, y - 22, x + 22, y + 22), fill=_colour(rng, 0.13, 0.9, 0.9))
    for depth in range(2):
        hills = (
            horizon
            - 40
            + 25 * depth
            + 22 * np.sin(np.linspace(0, rng.uniform(4, 9), width) + rng.uniform(0, 6))
        )
        outline = [(i, float(v)) for i, v in enumerate(hills)]
        pen.polygon([*outline, (width, height), (0, height)],
                    fill=_colour(rng, 0.36, 0.55 - 0.12 * depth, 0.3))  # fmt: skip
    water = label == "boat" or rng.random() < 0.3
    ground = _colour(rng, 0.56, 0.45, 0.5) if water else _colour(rng, 0.28, 0.42, 0.4)
    pen.rectangle((0, horizon, width, height), fill=ground)
    at = rng.uniform(0.25, 0.75) * width, horizon + rng.uniform(10, 50)
    if label in _OBJECTS:
        _OBJECTS[label](pen, rng, *at, rng.uniform(0.6, 1.3))
    noise = rng.normal(0, 5, (height, width, 1))
    noisy = np.asarray(image.filter(ImageFilter.GaussianBlur(0.8))) + noise
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def _house(
    pen: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, s: float
) -> None:
    wall, roof = _colour(rng, 0.1, 0.85, 0.4), _colour(rng, 0.02, 0.4, 0.6)
    pen.rectangle((x - 60 * s, y - 70 * s, x + 60 * s, y), fill=wall)
    pen.polygon([(x - 75 * s, y - 70 * s), (x, y - 130 * s), (x + 75 * s, y - 70 * s)], fill=roof)
    pen.rectangle((x - 14 * s, y - 42 * s, x + 14 * s, y), fill=_colour(rng, 0.06, 0.3, 0.5))
    for side in (-38, 38):
        window = (x + (side - 11) * s, y - 52 * s, x + (side + 11) * s, y - 30 * s)
        pen.rectangle(window, fill=_colour(rng, 0.55, 0.7, 0.6))


def _tree(pen: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, s: float) -> None:
    pen.rectangle((x - 9 * s, y - 70 * s, x + 9 * s, y), fill=_colour(rng, 0.07, 0.28, 0.4))
    for _ in range(9):
        cx, cy = x + rng.normal(0, 28) * s, y - (105 + rng.normal(0, 22)) * s
        r = rng.uniform(26, 42) * s
        pen.ellipse((cx - r, cy - r, cx + r, cy + r), fill=_colour(rng, 0.33, 0.33, 0.5))


def _boat(pen: ImageDraw.ImageDraw, rng: np.random.Generator, x: float, y: float, s: float) -> None:
    hull = [
        (x - 70 * s, y - 22 * s),
        (x + 70 * s, y - 22 * s),
        (x + 48 * s, y + 8 * s),
        (x - 48 * s, y + 8 * s),
    ]
    pen.polygon(hull, fill=_colour(rng, rng.choice([0.0, 0.6, 0.08]), 0.4, 0.6))
    pen.line((x, y - 22 * s, x, y - 140 * s), fill=(70, 55, 40), width=max(2, int(4 * s)))
    pen.polygon([(x + 5 * s, y - 135 * s), (x + 5 * s, y - 32 * s), (x + 62 * s, y - 32 * s)],
                fill=_colour(rng, 0.1, 0.93, 0.4))  # fmt: skip
    pen.polygon([(x - 5 * s, y - 120 * s), (x - 5 * s, y - 32 * s), (x - 42 * s, y - 32 * s)],
                fill=_colour(rng, 0.12, 0.88, 0.4))  # fmt: skip


_OBJECTS = {"house": _house, "tree": _tree, "boat": _boat}
