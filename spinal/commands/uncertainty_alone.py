"""Commands of the paper's two experiments that are no active learning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

Seeds = Annotated[str, typer.Option(help="Such as 0-4 or 0,3,5.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="SPINAL_DATA", help="Where datasets are kept."),
]


def uncertainty_alone(
    pairs: Annotated[
        list[str],
        typer.Argument(
            help="svhn-cifar-10, fashion-mnist-mnist, digits-permuted, or TOML files; `@cpu` and "
            "`@paper` choose a scale.",
            metavar="PAIR...",
        ),
    ],
    seeds: Seeds = "0-2",
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path(
        "runs/uncertainty-alone"
    ),
    data_dir: DataDir = None,
) -> None:
    """Train on one dataset; compare how unsure the methods are of another.

    The paper's experiment on SVHN and CIFAR-10: densities of the entropy of SPN-CNN, MC Dropout,
    ensembles and Deterministic, and how well it tells the datasets apart. What is done already is
    skipped; the report, OUT/report, is of all that is in OUT.
    """
    from spinal.cli import parse_seeds
    from spinal.experiments.uncertainty import PAIRS, run_pairs
    from spinal.report.uncertainty import detection, finished, write_uncertainty_report

    run_pairs([PAIRS.load(pair) for pair in pairs], parse_seeds(seeds), out, data_dir)
    written = write_uncertainty_report(out, out / "report")
    for found in finished(out).values():
        _show(detection(found).shown, f"{found[0].title}, in percent")
    _print_written(written, out / "report")


def full_mnist(
    experiment: Annotated[
        str, typer.Argument(help="mnist, digits, or a TOML file; `mnist@cpu` is smaller.")
    ] = "mnist",
    seeds: Seeds = "0-2",
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path(
        "runs/full-mnist"
    ),
    runs: Annotated[
        Path, typer.Option(help="Folder with runs of SPN-CNN; they are made if there are none.")
    ] = Path("runs"),
    data_dir: DataDir = None,
) -> None:
    """Compare SPN-CNN at 1,000 chosen labels with an SPN on raw pixels and all labels.

    The paper has 97.6 % for the one, and about 98 % from the literature for the other. What is
    done already is skipped; the report, OUT/report, is of all that is in OUT.
    """
    from spinal.cli import parse_seeds
    from spinal.experiments.full_labels import EXPERIMENTS, run_experiment
    from spinal.report.full_labels import comparison, finished, write_full_labels_report

    run_experiment(EXPERIMENTS.load(experiment), parse_seeds(seeds), out, runs, data_dir)
    written = write_full_labels_report(out, out / "report")
    for found in finished(out):
        _show(comparison(found).shown, found.title)
    _print_written(written, out / "report")


def _show(cells: pd.DataFrame, title: str) -> None:
    table = Table(box=None, header_style="dim", title=title, title_justify="left")
    for column in cells.columns:
        table.add_column(str(column), overflow="fold")
    for row in cells.to_numpy().tolist():
        table.add_row(*map(str, row))
    Console().print(table)


def _print_written(written: list[Path], out: Path) -> None:
    # The parts are too many to be listed; the page shows them.
    for path in written:
        if path.parent == out:
            Console().print(f"written: {path}", highlight=False, soft_wrap=True)
