"""``spinal fit``: fits the model of a project to all its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spinal.commands.options import ProjectFolder
from spinal.commands.output import tasks_bar

if TYPE_CHECKING:
    from spinal.label.store.project import Project


def fit(project: ProjectFolder) -> None:
    """Fit the model of a project to all its labels, if there are new ones.

    `spinal label` does this by itself while it is open. `spinal predict` also does it first, and
    so does `spinal export` if it needs the model.
    """
    from spinal.errors import SpinalError
    from spinal.label.learning.fitting import fit_project
    from spinal.label.learning.learnt import model_age
    from spinal.label.store.project import open_project

    opened = open_project(project)
    try:
        with tasks_bar("Fitting") as on_progress:
            fit_project(opened, on_progress)
        age, needed = model_age(opened), opened.settings.first_answers
        if age.labels < needed:
            raise SpinalError(f"{opened.home}: {age.labels} labels; {needed} are needed to start")
    finally:
        opened.close()
    typer.echo(str(age))


def update_model(project: Project) -> None:
    """Fit the model of an open project if there are new labels; warn if that is not possible."""
    from spinal.label.learning.fitting import bring_up_to_date

    with tasks_bar("Fitting") as on_progress:
        warning = bring_up_to_date(project, on_progress)
    if warning is not None:
        typer.echo(f"warning: {warning}", err=True)
