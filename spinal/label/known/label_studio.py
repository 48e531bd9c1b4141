"""Known labels from an export of Label Studio, as JSON or JSON-MIN."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from spinal.data.images import SUFFIXES
from spinal.errors import DataError
from spinal.label.store.sets import Label

#: The prefix that Label Studio adds to names of uploaded files.
_PREFIX = re.compile(r"^[0-9a-f]{8}-")


def read_label_studio(file: Path, *, multi: bool = False) -> list[tuple[str, Label]]:
    """File and class of each task that has one choice, in the order of the file.

    Args:
        file: the export.
        multi: whether an image can have several classes; all of them are then returned.

    Raises:
        DataError: if it is not such an export, or people chose different classes for an image.
    """
    try:
        tasks = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read as JSON ({error})") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{file}: not an export of Label Studio: a list of tasks is expected")
    labels: list[tuple[str, Label]] = []
    for task in tasks:
        name, answers = _file_of(task), _answers_of(task)
        if name is None or not answers:
            continue
        if multi:
            if len(set(answers)) > 1:
                raise DataError(f"{file}: people chose different classes for {name}")
            labels.append((name, tuple(sorted(answers[0]))))
            continue
        choices = sorted(frozenset[str]().union(*answers))
        if len(choices) > 1:
            raise DataError(f"{file}: {name} has several classes: {', '.join(choices)}")
        if choices:
            labels.append((name, choices[0]))
    return labels


def _file_of(task: dict[str, Any]) -> str | None:
    """The file of a task; None if it names no image."""
    data = task.get("data", task)
    values = [v for v in data.values() if isinstance(v, str)] if isinstance(data, dict) else []
    for value in values:
        parts = urlsplit(value)
        local = parse_qs(parts.query).get("d")
        path = local[0] if local else unquote(parts.path)
        if path.lower().endswith(SUFFIXES):
            if local or not (parts.scheme or path.startswith("/data/")):
                return path
            return _PREFIX.sub("", path.rsplit("/", 1)[-1])
    return None


def _answers_of(task: dict[str, Any]) -> list[frozenset[str]]:
    """The classes that each person chose for a task; people who skipped it are left out."""
    if "annotations" not in task:
        choice = task.get("choice")
        names = choice.get("choices") if isinstance(choice, dict) else [choice]
        chosen = frozenset(name for name in names or () if isinstance(name, str))
        return [chosen] if chosen else []
    answers = []
    for annotation in task["annotations"] or ():
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        chosen = frozenset()
        for result in annotation.get("result") or ():
            value = result.get("value") if isinstance(result, dict) else None
            choices = value.get("choices") if isinstance(value, dict) else None
            chosen |= {c for c in choices or () if isinstance(c, str)}
        answers.append(chosen)
    return answers
