"""The report: every table and plot of a folder of runs, as files."""

from __future__ import annotations

from pathlib import Path

from spinal.report import plots
from spinal.report.read import read_runs
from spinal.report.tables import summarise, to_markdown


def write_report(runs: str | Path, out: str | Path) -> list[Path]:
    """Write curves (PNG and SVG) and the table (CSV and Markdown); return the paths."""
    table = read_runs(runs)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for protocol in sorted(table["protocol"].unique()):
        figure = plots.learning_curves(table, protocol)
        for suffix in (".png", ".svg"):
            path = out / f"{protocol}{suffix}"
            plots.save(figure, path)
            written.append(path)
    summary = summarise(table)
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    (out / "summary.md").write_text(to_markdown(summary), encoding="utf-8")
    table.to_csv(out / "rounds.csv", index=False, float_format="%.6g")
    return [*written, out / "summary.csv", out / "summary.md", out / "rounds.csv"]
