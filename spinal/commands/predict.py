"""``spinal predict``: predicts more images or texts with the newest model of a project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinal.commands.fit import update_model
from spinal.commands.options import ProjectFolder
from spinal.commands.output import progress_bar

if TYPE_CHECKING:
    from spinal.data import Skipped


def predict(
    project: ProjectFolder,
    items: Annotated[
        list[Path],
        typer.Argument(help="Files or folders of images; for texts, tables or .txt files."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write. [default: standard output]")
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(help="Column of tables with the texts. [default: that of the project]"),
    ] = None,
) -> None:
    """Predict more images or texts with the model of a project; the result is a CSV table.

    The model is fitted first if there are new labels.

    For each image or text, the table has the most probable class and its probability (confidence),
    the entropy (uncertainty), the log_density (low if unusual), and the probability of each class.
    If an image can have several classes (--multi), it has all classes with a probability above one
    half, such as cat;dog, and the probability that the whole set is right.
    """
    from spinal.label.exports.csv_table import write_table
    from spinal.label.exports.predictions import images_in
    from spinal.label.exports.predictions import predict as run
    from spinal.label.exports.text_predictions import predict_texts, texts_in
    from spinal.label.store.project import open_project

    opened = open_project(project)
    skipped: list[Skipped] = []
    try:
        update_model(opened)
        with progress_bar("Computing features") as on_progress:
            if opened.texts is not None:
                texts = texts_in(items, text_column or opened.settings.text_column)
                table = predict_texts(opened, texts, on_progress)
            else:
                predictions = run(opened, images_in(items), on_progress)
                table = predictions.table([str(path) for path in predictions.paths])
                skipped = predictions.skipped
    finally:
        opened.close()
    if out is None:
        table.to_csv(sys.stdout, index=False, float_format="%.6g")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, out)
        typer.echo(f"written: {out}")
    for file in skipped:
        typer.echo(f"skipped: {file.path}: {file.reason}", err=True)
