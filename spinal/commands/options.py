"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.errors import SpinalError

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="SPINAL_DATA", help="Folder of the datasets."),
]
Seeds = Annotated[str, typer.Option(help="Such as 0-4 or 0,3,5.")]
Rounds = Annotated[int | None, typer.Option(min=0, help="Maximum number of rounds.")]
Workers = Annotated[int, typer.Option(min=0, help="Number of parallel runs; 0 for one per core.")]
Engine = Annotated[
    str, typer.Option(help="`joblib` for this machine, `ray` for a cluster (`spinal[ray]`).")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of the Ray cluster, such as `10.0.0.1:6379`. "
        "[default: RAY_ADDRESS, otherwise this machine]"
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, such as `network.width=0.5`; may be repeated. Keys are those of "
        "the TOML file. Results with other settings need another folder (--out), or another name "
        "(`--set name=mine`).",
    ),
]
ResultsFolder = Annotated[Path, typer.Option(help="Folder for results and report.")]
ProjectFolder = Annotated[
    Path,
    typer.Argument(help="Folder or table that was labelled, or project folder.", metavar="PROJECT"),
]


def parse_seeds(text: str) -> list[int]:
    """``0-2,5`` as ``[0, 1, 2, 5]``."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.strip().partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise SpinalError(
            f"seeds {text!r}: give numbers and ranges, such as 0-4 or 0,3,5"
        ) from error
    if not seeds:
        raise SpinalError(f"seeds {text!r}: that range is empty")
    return list(dict.fromkeys(seeds))
