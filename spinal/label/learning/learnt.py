"""The labels that the saved model of a project was fitted to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from spinal.files import CHECKSUMS, existing_folder, verify_checksums, write_text
from spinal.label.store.project import Project
from spinal.label.store.settings import ProjectSettings

#: Settings that the model of a project depends on.
_SETTINGS = ("classes", "encoder", "network", "method", "seed")


@dataclass(frozen=True)
class Age:
    """How up to date the saved model is.

    Attributes:
        labels: number of labels that it could be fitted to.
        unlearnt: number of these that it was not fitted to, or that have changed since.
        withdrawn: number of labels that it was fitted to and that no longer exist.
    """

    labels: int
    unlearnt: int
    withdrawn: int

    @property
    def is_current(self) -> bool:
        """Whether the model was fitted to all current labels."""
        return not self.unlearnt and not self.withdrawn

    def __str__(self) -> str:
        text = f"the model was fitted to {self.labels - self.unlearnt} of {self.labels} labels"
        return text + (f" and to {self.withdrawn} withdrawn ones" if self.withdrawn else "")


def note_learnt(project: Project, settings: ProjectSettings, labels: Mapping[int, str]) -> None:
    """Record the settings and labels (image to class) that the saved model was fitted to."""
    values = {
        "model": _fingerprint(project, settings),
        "classes": settings.classes,
        "labels": {str(image): label for image, label in labels.items()},
    }
    write_text(project.learnt_file, json.dumps(values))


def learnt_classes(project: Project) -> tuple[str, ...]:
    """The classes of the saved model, in its order; those of the project if not known."""
    try:
        values = json.loads(project.learnt_file.read_text(encoding="utf-8"))
        return tuple(str(name) for name in values["classes"])
    except (OSError, ValueError, KeyError, TypeError):
        return project.settings.classes  # no model yet, or a damaged file


def model_age(project: Project) -> Age:
    """How up to date the saved model is; not at all if it is unknown or has other settings."""
    rows = [row for row in project.store.images() if row["twin"] is None]
    wanted = {row["id"]: row["label"] for row in rows if row["problem"] is None}
    now = {image: label for image, label in wanted.items() if label is not None}
    learnt = _read(project)
    return Age(
        len(now),
        sum(learnt.get(image) != label for image, label in now.items()),
        sum(image in wanted and wanted[image] is None for image in learnt),
    )


def _read(project: Project) -> dict[int, str]:
    """The labels that the saved model was fitted to; empty if the record is of another model."""
    try:
        values = json.loads(project.learnt_file.read_text(encoding="utf-8"))
        if values["model"] == _fingerprint(project, project.settings):
            return {int(image): label for image, label in values["labels"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # none yet, or damaged
    return {}


def _fingerprint(project: Project, settings: ProjectSettings) -> str:
    """A hash of the saved model and of the settings that it depends on; an error if damaged."""
    folder = existing_folder(project.model_folder)
    verify_checksums(folder)
    values = [getattr(settings, name) for name in _SETTINGS]
    checksums = (folder / CHECKSUMS).read_bytes()
    return hashlib.sha256(checksums + json.dumps(values).encode()).hexdigest()
