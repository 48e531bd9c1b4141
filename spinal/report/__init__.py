"""Reports: read runs on disk; tables and plots. Nothing is trained here."""

from spinal.report.read import read_runs
from spinal.report.write import write_report

__all__ = ["read_runs", "write_report"]
