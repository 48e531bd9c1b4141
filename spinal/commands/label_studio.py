"""``spinal label-studio``: spinal chooses the next tasks in Label Studio."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def label_studio(
    url: Annotated[str, typer.Option(help="Its address.", metavar="http://HOST:PORT")],
    project: Annotated[int, typer.Option(help="Number of the project, as in its address.")],
    token: Annotated[
        str,
        typer.Option(
            envvar="LABEL_STUDIO_TOKEN",
            help="From Label Studio's page Account; safer in the environment than here.",
            prompt="Token",
            hide_input=True,
        ),
    ],
    features: Annotated[
        str,
        typer.Option(
            "--encoder",
            "--features",
            help="Encoder, such as `efficientnet-lite0` or `timm:resnet18`.",
        ),
    ] = "efficientnet-lite0",
    method: Annotated[str, typer.Option(help="See `spinal methods`.")] = "spn-cnn",
    acquisition: Annotated[str | None, typer.Option(help="[default: that of the method]")] = None,
    batch: Annotated[int, typer.Option(help="Number of new annotations for a new fit.")] = 10,
    ahead: Annotated[
        int, typer.Option(help="Number of next tasks to write predictions for; 0 for all.")
    ] = 100,
    every: Annotated[float, typer.Option(help="Seconds between two checks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Do one round, then exit.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the features of the images.")] = Path(
        "spinal-label-studio"
    ),
    seed: int = 0,
) -> None:
    """Let spinal choose the next tasks in Label Studio.

    Reads the tasks and annotations of a project that has one choice of classes for an image, and
    fits a model. Writes predictions with scores that make Label Studio's "uncertainty sampling"
    follow spinal's order. The raw uncertainty is stored as a column of each task.
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
