"""``spinal report``: writes tables, figures and a page from a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinal.commands.output import print_table, print_written


def report(
    runs: Annotated[Path, typer.Argument(help="Folder with runs.")] = Path("runs"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report. [default: RUNS/report]")
    ] = None,
) -> None:
    """Write a report on a folder of runs: one page, and its tables and figures as files.

    Nothing is trained, and no dataset is needed.
    """
    from spinal.report import summary_of, write_report
    from spinal.report.tables import HEADER, rows

    out = out or runs / "report"
    written = write_report(runs, out)
    title = "Accuracy and areas in percent; 95 % intervals"
    print_table(HEADER[:6], [cells[:6] for cells in rows(summary_of(runs))], title)
    print_written(written, out)
