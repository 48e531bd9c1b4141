"""The command line: ``spinal --help`` is its manual."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinal import __version__
from spinal.errors import SpinalError
from spinal.label import commands
from spinal.label.cli import label
from spinal.special_commands import full_mnist, uncertainty_alone
from spinal.tune_command import tune

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
    help=(
        "Decide which points to label next, and train the classifier from them.\n\n"
        "**Try it:** `spinal demo` compares three ways of choosing on small images that need no "
        "download.\n\n"
        "**Compare methods:** `spinal run PROTOCOL --method spn-cnn --method random --seeds 0-4`, "
        "then `spinal report runs`. Stopped in the middle, the same command goes on.\n\n"
        "**Tune one:** `spinal tune PROTOCOL` chooses learning rates and dropout on the validation "
        "set, and writes a protocol file.\n\n"
        "**The paper's other experiments:** `spinal uncertainty-alone` and `spinal full-mnist`.\n\n"
        "**Write your own experiment:** `spinal protocols digits > mine.toml`, edit it, "
        "`spinal run mine.toml`.\n\n"
        "**Data:** `spinal datasets` says what is there, and where to put what is not."
    ),
)
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="SPINAL_DATA", help="Where datasets are kept."),
]

Rounds = Annotated[int | None, typer.Option(min=0, help="Stop after so many rounds.")]
Workers = Annotated[int, typer.Option(min=0, help="Runs at a time; 0: one for each core.")]


def main() -> None:
    """Run the command line; an error of ours is one line on standard error, and exit code 2."""
    try:
        app(standalone_mode=True)
    except SpinalError as error:
        message = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(message, soft_wrap=True, highlight=False)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that go before a command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, picture and table.")] = Path(
        "spinal-demo"
    ),
    seeds: Annotated[str, typer.Option(help="Such as 0-2 or 0,3,5.")] = "0-2",
    rounds: Rounds = None,
    workers: Workers = 0,
) -> None:
    """Compare SPN-CNN, Deterministic and Random on handwritten digits; a couple of minutes.

    The digits come with scikit-learn: nothing is downloaded. Every method starts from the same 20
    labels and asks for 10 more in each round.
    """
    _run(
        ["digits"], ["spn-cnn", "deterministic", "random"], [], seeds, out / "runs", workers, rounds
    )
    _report(out / "runs", out)


@app.command("demo-spn")
def demo_spn(
    out: Annotated[Path, typer.Option(help="Folder for picture and table.")] = Path("spinal-demo"),
    seed: Annotated[int, typer.Option(help="Of the split, the fit, and what goes missing.")] = 0,
) -> None:
    """Show what an SPN can do that a softmax cannot, on handwritten digits; some seconds."""
    from spinal.showcase import showcase

    found, written = showcase(out, seed)
    table = Table(box=None, header_style="dim", title="Accuracy with features missing, in percent")
    for column in found.columns:
        table.add_column(str(column), justify="right")
    for row in found.to_numpy():
        table.add_row(f"{row[0]:.0%}", *(f"{100 * value:.1f}" for value in row[1:]))
    _print_written(table, written)


@app.command()
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
    seeds: Annotated[str, typer.Option(help="Such as 0-4 or 0,3,5.")] = "0",
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
    """
    methods = method or ["spn-cnn"]
    try:
        _run(
            protocols, methods, acquisition or [], seeds, out, workers, rounds, data_dir, engine,
            address,
        )  # fmt: skip
    except KeyboardInterrupt:
        Console().print("stopped; the same command goes on", highlight=False)
        raise
    Console().print(f"runs in {out}; now: spinal report {out}", highlight=False)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Folder with runs.")] = Path("runs"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report. [default: RUNS/report]")
    ] = None,
) -> None:
    """Write a report of a folder of runs: one page, and its tables and figures as files.

    Nothing is trained, and no dataset is needed.
    """
    _report(runs, out or runs / "report")


@app.command()
def protocols(
    name: Annotated[str | None, typer.Argument(help="Print this one's TOML file.")] = None,
) -> None:
    """List the protocols that come with spinal, or print one, to be copied and edited.

    `NAME@SCALE` is one at another scale: as the paper states it, small enough for a CPU, and so on.
    """
    import tomli_w

    from spinal.experiments import load_protocol, protocol_names, protocol_text
    from spinal.experiments.protocol import scale_names

    if name is not None:
        found = load_protocol(name)  # a wrong name gets its suggestion here
        shipped = name in protocol_names()
        typer.echo(protocol_text(name) if shipped else tomli_w.dumps(found.to_mapping()), nl=False)
        return
    table = Table(box=None, header_style="dim")
    for column in ("protocol", "dataset", "labels", "network", "scales"):
        table.add_column(column)
    for each in protocol_names():
        p = load_protocol(each)
        labels = f"{p.initial}, then {p.rounds} x {p.batch}"
        scales = ", ".join(f"@{scale}" for scale in scale_names(each)[1:])
        table.add_row(each, p.dataset, labels, p.network.name, scales)
    Console().print(table)


@app.command()
def methods() -> None:
    """List the methods, and the acquisition functions that go with each."""
    from spinal.methods import METHODS

    table = Table(box=None, header_style="dim")
    for column in ("method", "what it does", "acquisition (the first by default)"):
        table.add_column(column)
    for name, method in METHODS.items():
        table.add_row(name, method.summary, ", ".join(method.choices))
    Console().print(table)


@app.command()
def datasets(data_dir: DataDir = None) -> None:
    """List the datasets: where each was found, its size, and what is missing."""
    from spinal.data import list_datasets

    table = Table(box=None, header_style="dim")
    for column in ("dataset", "train", "test", "classes", "found in"):
        table.add_column(column, overflow="fold")
    for row in list_datasets(data_dir):
        shapes = [" x ".join(map(str, s)) if s else "" for s in (row.train_shape, row.test_shape)]
        where = row.source or f"not found: put {', '.join(row.missing)} into {row.folder}"
        if row.problem:
            where = f"{where}: {row.problem}"
        table.add_row(row.name, *shapes, str(len(row.classes)), where)
    Console().print(table)


app.command("uncertainty-alone")(uncertainty_alone)
app.command("full-mnist")(full_mnist)
app.command()(tune)
app.command()(label)
app.command()(commands.export)
app.command()(commands.predict)
app.command("label-studio")(commands.label_studio)


def _run(
    names: list[str],
    methods: list[str],
    acquisitions: list[str],
    seeds: str,
    out: Path,
    workers: int,
    rounds: int | None,
    data_dir: Path | None = None,
    engine: str = "joblib",
    address: str | None = None,
) -> None:
    from spinal.experiments import load_protocol, make_runs, run_grid
    from spinal.experiments.protocol import shortened

    chosen = [shortened(load_protocol(name), rounds) for name in names]
    runs = make_runs(chosen, methods, acquisitions, parse_seeds(seeds), out)
    run_grid(runs, workers=workers, data_dir=data_dir, engine=engine, address=address)


def _report(runs: Path, out: Path) -> None:
    from spinal.report import summary_of, write_report
    from spinal.report.tables import HEADER, rows

    written = write_report(runs, out)
    table = Table(
        box=None, header_style="dim", title="Accuracy and areas in percent; 95 % intervals"
    )
    for column in HEADER[:6]:
        table.add_column(column, overflow="fold")
    for cells in rows(summary_of(runs)):
        table.add_row(*cells[:6])
    # The parts are too many to be listed; the page shows them.
    _print_written(table, [path for path in written if path.parent == out])


def _print_written(table: Table, written: list[Path]) -> None:
    console = Console()
    console.print(table)
    console.print("\nwritten:", highlight=False)
    for path in written:
        console.print(f"  {path}", highlight=False, soft_wrap=True)


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


if __name__ == "__main__":
    main()
