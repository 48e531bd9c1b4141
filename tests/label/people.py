"""A worker that works until it is done, and a person who answers its questions."""

from __future__ import annotations

import time

from spinal.label.learning.worker import Worker
from spinal.label.store.project import Project
from spinal.label.store.store import Answer
from tests.label.conftest import CLASSES


def truth(path: str) -> str:
    """The class of an image, by its name; see `tests.label.files`."""
    return CLASSES[int(path[6:10]) % 3]


def work(worker: Worker) -> None:
    """All that is to do now."""
    for _ in range(50):
        if not worker.step():
            return
    raise AssertionError("the worker finds no rest")


def label(project: Project, n: int, wrong: int = -1) -> None:
    """Answer n questions, one of them wrongly."""
    for i in range(n):
        question = project.store.questions.ask("tab", "ada", 1)[0]
        said = truth(question.path)
        if i == wrong:
            said = CLASSES[(CLASSES.index(said) + 1) % 3]
        answer = Answer(f"{time.monotonic_ns()}-{i}", question.image, said)
        project.store.answer([answer], "ada")
