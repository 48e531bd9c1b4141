"""``spinal rank``: ranks a pool in files with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.completion import complete_acquisition
from spinal.commands.options import Address, Engine
from spinal.commands.output import progress_bar


def rank(
    pool: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders or patterns: Parquet, .npy, .npz, or tar files of WebDataset.",
            metavar="POOL...",
        ),
    ],
    model: Annotated[
        Path,
        typer.Option(
            help="A project of `spinal label`, an exported model, or a folder of "
            "`ActiveLearner.save`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    acquisition: Annotated[
        str, typer.Option(help="Acquisition function.", autocompletion=complete_acquisition)
    ] = "margin",
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of points to write. [default: all]")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of random candidates for functions that compare points (`auto`, "
            "herding). [default: 50,000]",
        ),
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            help="Table (CSV, Parquet) of points to leave out, with the columns `shard` and "
            "`row`; may be repeated."
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with the vectors, texts or images, or several columns of numbers; for tar "
            "files, the extension. [default: the only possible one]"
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with names of the points.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    workers: Annotated[
        int, typer.Option(min=0, help="Number of processes; 0 for one per core.")
    ] = 0,
    engine: Engine = "joblib",
    address: Address = None,
) -> None:
    """Rank a pool of any size with a trained model; the result is a Parquet file, best first.

    The pool is read in shards, with bounded memory. If interrupted, the same command continues. On
    a cluster, pool, model and result must be in folders that all nodes share. Needs
    `spinal[parquet]`.
    """
    from spinal.ranking import rank as run

    with progress_bar("Ranking") as on_progress:
        ranking = run(
            pool, model, out, acquisition=acquisition, top=top, candidates=candidates,
            known=known or (), column=column or (), id_column=id_column, seed=seed, engine=engine,
            workers=workers, address=address, on_progress=on_progress,
        )  # fmt: skip
    typer.echo(f"written: {ranking.path}: {ranking.ranked:,} of {ranking.points:,} points")
    if ranking.skipped:
        typer.echo(f"skipped: {ranking.skipped:,} points: {ranking.path}.skipped.csv", err=True)
