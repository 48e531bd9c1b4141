"""``spinal export``: writes the labels of a project, or its classifier, for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.fit import update_model
from spinal.commands.options import ProjectFolder
from spinal.commands.output import progress_bar


def export(
    project: ProjectFolder,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="`labels.csv` or `labels.jsonl` (any such file), `label-studio`, `notes`; for "
            "images, `imagefolder`, `coco`; or `model` for the classifier itself, as safetensors, "
            "a small Python module, and ONNX.",
        ),
    ] = "labels.csv",
    out: Annotated[Path | None, typer.Option(help="File or folder to write.")] = None,
    predictions: Annotated[
        bool, typer.Option(help="Add predictions for images or texts without a label.")
    ] = False,
) -> None:
    """Write the labels of a project, or its classifier, for use elsewhere.

    If the model is needed and there are new labels, it is fitted first.
    """
    from spinal.label.exports.export import export as write
    from spinal.label.exports.export import export_model
    from spinal.label.store.project import open_project

    opened = open_project(project)
    try:
        if to == "model" or predictions:
            update_model(opened)
        if to == "model":
            written = export_model(opened, out or Path("classifier"))
        else:
            with progress_bar("Computing features") as on_progress:
                written = write(opened, to, out, predictions=predictions, on_progress=on_progress)
        disputed, kind = opened.store.progress()["disputed"], opened.settings.kind
    finally:
        opened.close()
    for path in written:
        typer.echo(f"written: {path}")
    if disputed and to != "model":
        typer.echo(f"left out: {disputed} {kind} on which people disagree", err=True)
