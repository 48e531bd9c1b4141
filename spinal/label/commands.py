"""Commands for what comes after labelling: export, predict, Label Studio."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from spinal.data import Skipped

ProjectArgument = Annotated[
    Path, typer.Argument(help="Folder of images, or project folder.", metavar="PROJECT")
]


def export(
    project: ProjectArgument,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="`labels.csv` (any CSV file), `imagefolder`, `coco`, `label-studio`; or `model` "
            "for the classifier itself, as safetensors, a small Python module, and ONNX.",
        ),
    ] = "labels.csv",
    out: Annotated[Path | None, typer.Option(help="File or folder to write.")] = None,
    predictions: Annotated[
        bool, typer.Option(help="Add what the model says about the images without a label.")
    ] = False,
) -> None:
    """Write the labels of a project, or its classifier, for use elsewhere."""
    from spinal.label.export import export as write
    from spinal.label.export import export_model
    from spinal.label.project import open_project

    opened = open_project(project)
    try:
        if to == "model":
            written = export_model(opened, out or Path("classifier"))
        else:
            with _bar("Computing features") as on_progress:
                written = write(opened, to, out, predictions=predictions, on_progress=on_progress)
        disputed = opened.store.progress()["disputed"]
    finally:
        opened.close()
    for path in written:
        typer.echo(f"written: {path}")
    if disputed and to != "model":
        typer.echo(f"left out: {disputed} images on which people disagree", err=True)


def predict(
    project: ProjectArgument,
    images: Annotated[list[Path], typer.Argument(help="Files, or folders of them.")],
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write; without, to standard output.")
    ] = None,
) -> None:
    """Predict more images with the newest model of a project; the result is a CSV table.

    For each image: the most probable class and its probability (confidence), the entropy of all
    of them (uncertainty), how usual the image is (log_density), and each class's probability.
    """
    from spinal.label.export import images_in
    from spinal.label.export import predict as run
    from spinal.label.formats import write_table
    from spinal.label.project import open_project

    opened = open_project(project)
    try:
        with _bar("Computing features") as on_progress:
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
    _print_skipped(predictions.skipped)


def _print_skipped(skipped: list[Skipped]) -> None:
    for each in skipped:
        typer.echo(f"skipped: {each.path}: {each.reason}", err=True)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, on a terminal, and the function that moves it."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
