"""Images that have several colours, or none, for tests."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from PIL import Image

from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer

CLASSES = ("red", "green", "blue")


def make_colours(folder: Path, n: int = 40, size: int = 16, seed: int = 0) -> dict[str, tuple]:
    """Noisy patches whose channels are bright or dark; the bright ones of each name."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    labels = {}
    for i in range(n):
        bright = rng.random(3) < 0.4
        pixels = np.where(bright, 200, 40) + rng.normal(0, 30, (size, size, 3))
        name = f"image-{i:04}.png"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
        labels[name] = tuple(c for c, on in zip(CLASSES, bright, strict=True) if on)
    return labels


def make_project(folder: Path, n: int = 40, **settings: object) -> tuple[Project, dict[str, tuple]]:
    """A project of such images, without answers."""
    labels = make_colours(folder, n)
    arguments = {"classes": CLASSES, "encoder": "pixels@4", "multi": True, **settings}
    project = open_project(folder, **arguments)  # type: ignore[arg-type]
    project.scan()
    return project, labels


def give(project: Project, image: int, label: tuple | None, person: str = "ada", **more) -> str:
    """Answer about an image; the token."""
    token = f"token-{time.monotonic_ns()}"
    project.store.answer([Answer(token, image, label, **more)], person)
    return token


def label_all(project: Project, labels: dict[str, tuple], n: int) -> None:
    """Answer n questions, rightly."""
    for _ in range(n):
        question = project.store.questions.ask("tab", "ada", 1)[0]
        give(project, question.image, labels[question.path])
