"""A short part of the fuzz campaign, always the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
@pytest.mark.parametrize(
    "targets",
    ["images,csv,npz,run,idx,cifar,matlab", "protocol,circuit,network,project", "requests"],
)
def test_damage_and_strange_requests_are_refused_in_one_line(targets: str) -> None:
    command = [sys.executable, "-m", "benchmarks.fuzz", "--cases", "25", "--targets", targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
