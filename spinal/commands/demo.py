"""``spinal demo``: a small comparison that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.options import Rounds, Seeds, Workers
from spinal.commands.report import report
from spinal.commands.run import run_all


def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, picture and table.")] = Path(
        "spinal-demo"
    ),
    seeds: Seeds = "0-2",
    rounds: Rounds = None,
    workers: Workers = 0,
) -> None:
    """Compare SPN-CNN, Deterministic and Random on handwritten digits; a few minutes.

    The digits come with scikit-learn: nothing is downloaded. Every method starts from the same 20
    labels and asks for 10 more in each round.
    """
    methods = ["spn-cnn", "deterministic", "random"]
    run_all(["digits"], methods, seeds=seeds, out=out / "runs", rounds=rounds, workers=workers)
    report(out / "runs", out)
