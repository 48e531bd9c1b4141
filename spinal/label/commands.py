"""Commands for what comes after labelling: export, predict, Label Studio."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    from spinal.label.exports.export import export as write
    from spinal.label.exports.export import export_model
    from spinal.label.store.project import open_project

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
    from spinal.label.exports.csv_table import write_table
    from spinal.label.exports.predictions import images_in
    from spinal.label.exports.predictions import predict as run
    from spinal.label.store.project import open_project

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


def label_studio(
    url: Annotated[str, typer.Option(help="Where it is.", metavar="http://HOST:PORT")],
    project: Annotated[int, typer.Option(help="Number of the project, as in its address.")],
    token: Annotated[
        str,
        typer.Option(
            envvar="LABEL_STUDIO_TOKEN",
            help="From Label Studio's page Account; better in the environment than here.",
            prompt="Token",
            hide_input=True,
        ),
    ],
    features: Annotated[
        str, typer.Option(help="Backbone, such as `efficientnet-lite0` or `timm:resnet18`.")
    ] = "efficientnet-lite0",
    method: Annotated[str, typer.Option(help="See `spinal methods`.")] = "spn-cnn",
    acquisition: Annotated[str | None, typer.Option(help="[default: the method's own]")] = None,
    batch: Annotated[int, typer.Option(help="Fit again after so many new annotations.")] = 10,
    ahead: Annotated[
        int, typer.Option(help="Tasks to write predictions for, those asked next; 0: all.")
    ] = 100,
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Do one round, and end.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the features of its images are kept.")] = Path(
        "spinal-label-studio"
    ),
    seed: int = 0,
) -> None:
    """Let Label Studio ask what spinal would ask.

    Reads the tasks and annotations of a project that has one choice of classes for an image, fits,
    and writes predictions whose scores make its "uncertainty sampling" follow. The raw uncertainty
    is kept as a column of each task.
    """
    from spinal.encoders import load_encoder
    from spinal.label.studio.api import StudioAPI
    from spinal.label.studio.studio import Studio

    studio = Studio(
        StudioAPI(url, token), project, load_encoder(features), folder, ahead=ahead or None,
        batch=batch, method=method, acquisition=acquisition, seed=seed, say=typer.echo,
    )  # fmt: skip
    if once:
        studio.step(force=True)
        return
    with suppress(KeyboardInterrupt):
        studio.run(every)


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
