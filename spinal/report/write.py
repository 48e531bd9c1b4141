"""Writing the report on a folder of runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from spinal.files import write_text
from spinal.report import (
    calibration,
    comparison,
    curves,
    network,
    origin,
    penalties,
    picks,
    plots,
    significance,
    timing,
)
from spinal.report.experiment import Experiment, experiments
from spinal.report.page import Chapter, page
from spinal.report.parts import Drawing, Section
from spinal.report.read import rounds_table, stored_runs
from spinal.report.tables import summarise, to_markdown

_OVERALL = "overall"


def write_report(runs: str | Path, out: str | Path) -> list[Path]:
    """Write the page (``index.html``), its parts, and a summary; return the paths.

    Parts are in a folder for each protocol: figures as SVG, tables as CSV, Markdown and LaTeX. The
    same runs give the same files, byte for byte.
    """
    stored = stored_runs(runs)
    compared = experiments(stored)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    chapters: list[Chapter] = [(e.file_name, e.title, _sections(e)) for e in compared]
    overall = penalties.section(compared)
    if overall is not None:
        chapters.append(
            (_OVERALL, "All experiments" if len(compared) > 1 else "Overall", [overall])
        )
    write_text(out / "index.html", page(chapters))
    written = [out / "index.html", *_write_overview(compared, out)]
    rounds_table(stored).to_csv(out / "rounds.csv", index=False, float_format="%.6g")
    return [*written, out / "rounds.csv", *write_parts(chapters, out)]


def summary_of(runs: str | Path) -> pd.DataFrame:
    """The summary of the comparable runs under a folder."""
    return summarise(experiments(stored_runs(runs)))


def _sections(experiment: Experiment) -> list[Section]:
    sections = [
        curves.section(experiment),
        comparison.section(experiment),
        significance.section(experiment),
        network.section(experiment),
        timing.section(experiment),
        calibration.section(experiment),
        picks.section(experiment),
        origin.section(experiment),
    ]
    return [section for section in sections if section is not None]


def _write_overview(compared: list[Experiment], out: Path) -> list[Path]:
    """The curves of each experiment and the summary of all, for use outside the page."""
    written = []
    for experiment in compared:
        figure = curves.learning_curves(experiment)
        for suffix in (".png", ".svg"):
            written.append(out / f"{experiment.file_name}{suffix}")
            plots.save(figure, written[-1])
    summary = summarise(compared)
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    write_text(out / "summary.md", to_markdown(summary))
    return [*written, out / "summary.csv", out / "summary.md"]


def write_parts(chapters: list[Chapter], out: Path) -> list[Path]:
    """Write every table and drawing of the page to separate files."""
    written = []
    for name, _, sections in chapters:
        folder = out / name
        folder.mkdir(exist_ok=True)
        for part in (part for section in sections for part in section.parts):
            if isinstance(part, Drawing):
                contents = {".svg": part.svg}
            else:
                contents = {
                    ".csv": part.to_csv(), ".md": part.to_markdown(), ".tex": part.to_latex(),
                }  # fmt: skip
            for suffix, text in contents.items():
                written.append(folder / f"{part.name}{suffix}")
                write_text(written[-1], text)
    return written
