"""Fitting of a project's model on request, without the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinal.label.learning.learnt import model_age
from spinal.label.learning.worker import Worker
from spinal.label.store.locking import InUseError
from spinal.label.store.project import Project


def fit_project(
    project: Project, on_progress: Callable[[str, int, int], None] | None = None
) -> bool:
    """Fit the model of a project to all its labels, if there are enough and some are new.

    Args:
        project: the project.
        on_progress: called with the current task, the number of steps done, and that of all steps.

    Returns:
        Whether it was fitted.

    Raises:
        InUseError: if it is open in `spinal label`, which fits by itself.
    """
    age = model_age(project)
    if age.is_current or age.labels < project.settings.first_answers:
        return False

    def say(status: dict[str, Any]) -> None:
        if on_progress is not None and "total" in status:
            what = "Computing features" if status["state"] == "features" else "Fitting"
            on_progress(what, status["done"], status["total"])

    with project.locked():
        Worker(project, say).fit_to_all()
    return True


def bring_up_to_date(
    project: Project, on_progress: Callable[[str, int, int], None] | None = None
) -> str | None:
    """Like `fit_project`, but return a warning if `spinal label` is open and has not fitted yet."""
    try:
        fit_project(project, on_progress)
    except InUseError:
        return (
            f"{model_age(project)}; `spinal label` is open, and fits the rest when nobody has "
            "answered for a few seconds"
        )
    return None
