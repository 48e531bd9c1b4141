"""``spinal datasets``: lists and downloads datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from spinal.commands.completion import complete_dataset
from spinal.commands.options import DataDir
from spinal.commands.output import print_table


def datasets(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Download these datasets if they are missing, and check them.",
            metavar="[NAME]...",
            autocompletion=complete_dataset,
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """List the datasets: where each was found, its size, and what is missing."""
    from spinal.data import list_datasets, load_dataset

    for name in names or ():
        load_dataset(name, data_dir)
    rows = []
    for row in list_datasets(data_dir):
        shapes = [" x ".join(map(str, s)) if s else "" for s in (row.train_shape, row.test_shape)]
        where = row.source or f"not found: put {', '.join(row.missing)} into {row.folder}"
        if row.problem:
            where = f"{where}: {row.problem}"
        rows.append((row.name, *shapes, str(len(row.classes)), where))
    print_table(("dataset", "train", "test", "classes", "found in"), rows)
