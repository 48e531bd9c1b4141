"""``spinal rank``: a pool in files, ranked by a trained model."""

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
        str, typer.Option(help="How points are chosen.", autocompletion=complete_acquisition)
    ] = "margin",
    top: Annotated[
        int | None, typer.Option(min=1, help="Write only so many points. [default: all]")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Points, drawn at random, among which functions that compare points (`auto`, "
            "herding) choose. [default: 50,000]",
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
            help="Column with the vectors, texts or images; several for numbers. Of tar files, the "
            "extension. [default: the only one possible]"
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with names of the points.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one for each core.")] = 0,
    engine: Engine = "joblib",
    address: Address = None,
) -> None:
    """Rank a pool of any size with a trained model; the result is a Parquet file, best first.

    The pool is read in shards, with bounded memory. Stopped in the middle, the same command goes
    on. On a cluster, pool, model and result are in folders that all nodes share. It needs
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
