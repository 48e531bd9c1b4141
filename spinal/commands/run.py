"""``spinal run``: experiments, as a grid of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spinal.commands.options import Changes, DataDir, Rounds, Seeds, Workers, parse_seeds


def run(
    protocols: Annotated[
        list[str],
        typer.Argument(help="Names (`spinal protocols`) or TOML files.", metavar="PROTOCOL..."),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(help="May be repeated; `all` for all of them. [default: spn-cnn]"),
    ] = None,
    acquisition: Annotated[
        list[str] | None, typer.Option(help="May be repeated. [default: the method's own]")
    ] = None,
    seeds: Seeds = "0",
    changes: Changes = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    rounds: Rounds = None,
    workers: Workers = 0,
    engine: Annotated[
        str, typer.Option(help="`joblib` for this machine, `ray` for a cluster (`spinal[ray]`).")
    ] = "joblib",
    address: Annotated[
        str | None,
        typer.Option(
            help="Of the Ray cluster, such as `10.0.0.1:6379`. "
            "[default: RAY_ADDRESS, or else this machine]"
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run experiments: protocols x methods x acquisition functions x seeds.

    Finished runs are skipped, interrupted ones go on where they stopped, to the same result. Runs
    that fail are listed at the end, and do not stop the others. On a cluster, all nodes need the
    same spinal, and share the folder of the runs.

    Try a setting without a file of your own:
    `spinal run digits --set network.width=0.5 --set name=digits-narrow`.
    """
    try:
        run_all(
            protocols, method or ["spn-cnn"], acquisition or [], seeds=seeds, changes=changes or [],
            out=out, rounds=rounds, workers=workers, engine=engine, address=address,
            data_dir=data_dir,
        )  # fmt: skip
    except KeyboardInterrupt:
        Console().print("stopped; the same command goes on", highlight=False)
        raise
    Console().print(f"runs in {out}; now: spinal report {out}", highlight=False)


def run_all(
    protocols: Sequence[str],
    methods: Sequence[str],
    acquisitions: Sequence[str] = (),
    *,
    seeds: str,
    changes: Sequence[str] = (),
    out: Path,
    rounds: int | None,
    workers: int,
    engine: str = "joblib",
    address: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Run all combinations that make sense; arguments are the options of `run`."""
    from spinal.experiments import load_protocol, make_runs, run_grid
    from spinal.experiments.protocol import shortened

    chosen = [shortened(load_protocol(name, changes), rounds) for name in protocols]
    runs = make_runs(chosen, methods, acquisitions, parse_seeds(seeds), out)
    run_grid(runs, workers=workers, data_dir=data_dir, engine=engine, address=address)
