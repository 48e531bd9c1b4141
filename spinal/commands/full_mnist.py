"""``spinal full-mnist``: compares a few chosen labels with all labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.options import Changes, DataDir, ResultsFolder, Seeds, parse_seeds
from spinal.commands.output import print_frame, print_written


def full_mnist(
    experiment: Annotated[
        str, typer.Argument(help="mnist, digits, or a TOML file; `mnist@cpu` is smaller.")
    ] = "mnist",
    seeds: Seeds = "0-2",
    changes: Changes = None,
    out: ResultsFolder = Path("runs/full-mnist"),
    runs: Annotated[
        Path, typer.Option(help="Folder with runs of SPN-CNN; missing runs are computed.")
    ] = Path("runs"),
    data_dir: DataDir = None,
) -> None:
    """Compare SPN-CNN at 1,000 chosen labels with an SPN on raw pixels and all labels.

    The paper has 97.6 % for the first, and about 98 % from the literature for the second. Finished
    runs are skipped. The report, OUT/report, covers all results in OUT.
    """
    from spinal.experiments.full_labels import EXPERIMENTS, run_experiment
    from spinal.report.full_labels import comparison, finished, write_full_labels_report

    chosen = EXPERIMENTS.load(experiment, changes or [])
    run_experiment(chosen, parse_seeds(seeds), out, runs, data_dir)
    written = write_full_labels_report(out, out / "report")
    for results in finished(out):
        print_frame(comparison(results).shown, results.title)
    print_written(written, out / "report")
