"""``spinal run``: runs experiments, as a grid of runs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from spinal.commands.completion import complete_acquisition, complete_method, complete_protocol
from spinal.commands.options import (
    Address,
    Changes,
    DataDir,
    Engine,
    Rounds,
    Workers,
    parse_seeds,
)


class SPNs(str, Enum):
    """Which SPN is run."""

    paper = "paper"
    tuned = "tuned"


def run(
    protocols: Annotated[
        list[str],
        typer.Argument(
            help="Names (`spinal protocols`) or TOML files.",
            metavar="PROTOCOL...",
            autocompletion=complete_protocol,
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="May be repeated; `all` for all of them. [default: spn-cnn]",
            autocompletion=complete_method,
        ),
    ] = None,
    acquisition: Annotated[
        list[str] | None,
        typer.Option(
            help="May be repeated. [default: that of the method]",
            autocompletion=complete_acquisition,
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Such as 0-4 or 0,3,5. [default: 0-4 if the paper has a table, otherwise 0]"
        ),
    ] = None,
    spn: Annotated[
        SPNs | None,
        typer.Option(
            help="`paper`: the SPN is trained as in the paper, with plain max entropy and "
            "variation ratio; `tuned`: in closed form, with margin. [default: that of the scale]"
        ),
    ] = None,
    changes: Changes = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    rounds: Rounds = None,
    workers: Workers = 0,
    engine: Engine = "joblib",
    address: Address = None,
    data_dir: DataDir = None,
) -> None:
    """Run experiments: protocols x methods x acquisition functions x seeds.

    Finished runs are skipped. Interrupted runs resume where they stopped, with the same result.
    Failed runs are listed at the end, and do not stop the others. On a cluster, all nodes need the
    same version of spinal and must share the folder of the runs.

    Try a setting without writing a file:
    `spinal run digits --set network.width=0.5 --set name=digits-narrow`.
    """
    try:
        run_all(
            protocols, method or ["spn-cnn"], acquisition or [], seeds=seeds,
            spn=None if spn is None else spn.value, changes=changes or [], out=out, rounds=rounds,
            workers=workers, engine=engine, address=address, data_dir=data_dir,
        )  # fmt: skip
    except KeyboardInterrupt:
        Console().print("stopped; the same command continues", highlight=False)
        raise
    Console().print(f"runs in {out}; now: spinal report {out}", highlight=False)


def run_all(
    protocols: Sequence[str],
    methods: Sequence[str],
    acquisitions: Sequence[str] = (),
    *,
    seeds: str | None,
    spn: Literal["paper", "tuned"] | None = None,
    changes: Sequence[str] = (),
    out: Path,
    rounds: int | None,
    workers: int,
    engine: str = "joblib",
    address: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Run all valid combinations; the arguments are the options of `run`."""
    from spinal.experiments import load_protocol, make_runs, run_grid
    from spinal.experiments.grid import left_out
    from spinal.experiments.protocol import shortened, with_spn

    chosen = [shortened(load_protocol(name, changes), rounds) for name in protocols]
    if spn is not None:
        chosen = [with_spn(protocol, spn) for protocol in chosen]
    runs = make_runs(
        chosen, methods, acquisitions, None if seeds is None else parse_seeds(seeds), out
    )
    for left_method, acquisition in left_out(methods, acquisitions):
        Console().print(f"left out: {left_method} does not go with {acquisition}", highlight=False)
    run_grid(runs, workers=workers, data_dir=data_dir, engine=engine, address=address)
