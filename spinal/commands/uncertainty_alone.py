"""``spinal uncertainty-alone``: measures uncertainty on a dataset that was not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.options import Changes, DataDir, ResultsFolder, Seeds, parse_seeds
from spinal.commands.output import print_frame, print_written


def uncertainty_alone(
    pairs: Annotated[
        list[str],
        typer.Argument(
            help="svhn-cifar-10, fashion-mnist-mnist, digits-permuted, or TOML files; `@cpu`, "
            "`@small` and `@paper` choose a scale.",
            metavar="PAIR...",
        ),
    ],
    seeds: Seeds = "0-2",
    changes: Changes = None,
    out: ResultsFolder = Path("runs/uncertainty-alone"),
    data_dir: DataDir = None,
) -> None:
    """Train on one dataset; compare the uncertainty of the methods on another.

    The paper's experiment on SVHN and CIFAR-10: densities of the entropy of SPN-CNN, MC Dropout,
    ensembles and Deterministic, and how well it separates the datasets. Finished runs are skipped.
    The report, OUT/report, covers all results in OUT.
    """
    from spinal.experiments.uncertainty import PAIRS, run_pairs
    from spinal.report.uncertainty import detection, finished, write_uncertainty_report

    chosen = [PAIRS.load(pair, changes or []) for pair in pairs]
    run_pairs(chosen, parse_seeds(seeds), out, data_dir)
    written = write_uncertainty_report(out, out / "report")
    for results in finished(out).values():
        print_frame(detection(results).shown, f"{results[0].title}, in percent")
    print_written(written, out / "report")
