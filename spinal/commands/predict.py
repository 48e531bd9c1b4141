"""``spinal predict``: the newest model of a project, on more images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.fit import update_model
from spinal.commands.options import ProjectFolder
from spinal.commands.output import progress_bar


def predict(
    project: ProjectFolder,
    images: Annotated[list[Path], typer.Argument(help="Files, or folders of them.")],
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write; without, to standard output.")
    ] = None,
) -> None:
    """Predict more images with the model of a project; the result is a CSV table.

    The model is fitted first if there are new labels.

    For each image: the most probable class and its probability (confidence), the entropy of all
    of them (uncertainty), how usual the image is (log_density), and each class's probability.
    """
    from spinal.label.exports.csv_table import write_table
    from spinal.label.exports.predictions import images_in
    from spinal.label.exports.predictions import predict as run
    from spinal.label.store.project import open_project

    opened = open_project(project)
    try:
        update_model(opened)
        with progress_bar("Computing features") as on_progress:
            predictions = run(opened, images_in(images), on_progress)
    finally:
        opened.close()
    table = predictions.table([str(path) for path in predictions.paths])
    if out is None:
        table.to_csv(sys.stdout, index=False, float_format="%.6g")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, out)
        typer.echo(f"written: {out}")
    for skipped in predictions.skipped:
        typer.echo(f"skipped: {skipped.path}: {skipped.reason}", err=True)
