"""Experiments: protocols as TOML files, the grid of runs, runs on disk."""

from spinal.experiments.grid import make_runs, run_grid
from spinal.experiments.protocol import Protocol, load_protocol, protocol_names, protocol_text
from spinal.experiments.runs import Run, execute

__all__ = [
    "Protocol",
    "Run",
    "execute",
    "load_protocol",
    "make_runs",
    "protocol_names",
    "protocol_text",
    "run_grid",
]
