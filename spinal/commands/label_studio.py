"""``spinal label-studio``: Label Studio asks what spinal would ask."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


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
        str,
        typer.Option(
            "--encoder",
            "--features",
            help="Backbone, such as `efficientnet-lite0` or `timm:resnet18`.",
        ),
    ] = "efficientnet-lite0",
    method: Annotated[str, typer.Option(help="See `spinal methods`.")] = "spn-cnn",
    acquisition: Annotated[str | None, typer.Option(help="[default: the method's own]")] = None,
    batch: Annotated[int, typer.Option(help="Fit again after so many new annotations.")] = 10,
    ahead: Annotated[
        int, typer.Option(help="Tasks to write predictions for, those asked next; 0: all.")
    ] = 100,
    every: Annotated[float, typer.Option(help="Seconds between two checks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Do one round, then exit.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the features of its images are kept.")] = Path(
        "spinal-label-studio"
    ),
    seed: int = 0,
) -> None:
    """Let spinal choose the next tasks in Label Studio.

    Reads the tasks and annotations of a project that has one choice of classes for an image, fits,
    and writes predictions whose scores make its "uncertainty sampling" follow the same order.
    The raw uncertainty is stored as a column of each task.
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
