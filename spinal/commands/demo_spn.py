"""``spinal demo-spn``: what an SPN can do that a softmax cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.output import print_table, print_written


def demo_spn(
    out: Annotated[Path, typer.Option(help="Folder for picture and table.")] = Path("spinal-demo"),
    seed: Annotated[int, typer.Option(help="Seed of split, fit and missing features.")] = 0,
) -> None:
    """Show what an SPN can do that a softmax cannot, on handwritten digits; a few seconds."""
    from spinal.experiments.showcase import compare
    from spinal.report.showcase import write_showcase

    comparison = compare(seed)
    written = write_showcase(comparison.accuracies, comparison.digits, comparison.noise, out)
    rows = [
        (f"{share:.0%}", *(f"{100 * accuracy:.1f}" for accuracy in accuracies))
        for share, *accuracies in comparison.accuracies.to_numpy()
    ]
    title = "Accuracy with features missing, in percent"
    print_table(map(str, comparison.accuracies.columns), rows, title, justify="right")
    print_written(written, out)
