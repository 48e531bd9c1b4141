"""Runs on disk: records of rounds, folders, locks, and the origin of results.

Nothing here imports torch or a model, so that reports can read runs without them.
"""

from spinal.runs.folder import RunBusyError, RunFolder, read_settings, seed_of
from spinal.runs.lines import read_lines, write_lines
from spinal.runs.records import RoundRecord, read_rounds

__all__ = [
    "RoundRecord",
    "RunBusyError",
    "RunFolder",
    "read_lines",
    "read_rounds",
    "read_settings",
    "seed_of",
    "write_lines",
]
