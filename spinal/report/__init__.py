"""Reports on runs on disk: tables, tests, figures, one page. Nothing is trained here."""

from spinal.report.read import read_runs
from spinal.report.write import summary_of, write_report

__all__ = ["read_runs", "summary_of", "write_report"]
