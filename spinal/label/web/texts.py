"""Texts for the page, with the words that support the model's prediction."""

from __future__ import annotations

import json
from typing import Any

from spinal.errors import DataError
from spinal.label.store.project import Project
from spinal.label.web.security import RefusedError

#: Maximum number of characters of a text that are sent to the page.
MOST = 100_000


class TextViews:
    """Texts and marked words of a project.

    Args:
        project: the project; `show` works only if it is one of texts.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._marks: dict[str, list[list[Any]]] = {}
        self._read: tuple[int, int] | None = None

    def show(self, number: int) -> dict[str, Any]:
        """A text: ``text``, ``title`` (where it occurs), ``cut`` (characters left out), ``marks``.

        Marks are words with their weights. Texts that are reserved for the audit have no marks.

        Raises:
            RefusedError: if it cannot be shown.
        """
        texts, row = self._project.texts, self._project.store.image(number)
        if texts is None:
            raise RefusedError(404, "a project of images")
        try:
            text = texts.text(row["path"])
        except DataError as error:
            self._project.store.set_problems([(row["path"], str(error))])
            self._project.store.questions.release(number)
            raise RefusedError(404, f"cannot be shown: {error}") from error
        return {
            "text": text[:MOST],
            "title": texts.title(row["path"]),
            "cut": max(len(text) - MOST, 0),
            "marks": [] if row["reserved"] else self._newest_marks().get(str(number), []),
        }

    def _newest_marks(self) -> dict[str, list[list[Any]]]:
        """Marked words by number of the text; read again when the file has changed."""
        try:
            stat = self._project.marks_file.stat()
            now = (stat.st_mtime_ns, stat.st_ino)
            if now != self._read:
                content = self._project.marks_file.read_text(encoding="utf-8")
                self._marks, self._read = json.loads(content), now
        except (OSError, ValueError):  # none yet, or damaged: the next fit writes it again
            return {}
        return self._marks
