"""A short part of the fuzz campaign, always the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz import attempt, damage
from benchmarks.fuzz_requests import ENDPOINTS, run_endpoints
from benchmarks.fuzz_targets import make_project
from spinal.label.store.project import open_project
from spinal.label.web.security import Rules
from spinal.label.web.server import Server

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
@pytest.mark.parametrize(
    "targets",
    [
        "images,csv,npz,run,idx,cifar,matlab",
        pytest.param("protocol,circuit,network,project", marks=pytest.mark.long),
    ],
)
def test_damage_is_refused_in_one_line(targets: str) -> None:
    command = [sys.executable, "-m", "benchmarks.fuzz", "--cases", "25", "--targets", targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of its memory")
def test_strange_requests_are_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    quick = [name for name in ENDPOINTS if not name.startswith(("POST /api/try", "GET /text"))]
    run_endpoints(quick, tmp_path, "0", range(20 * len(quick)), attempt, damage)
    said = capfd.readouterr().out.splitlines()
    assert sum('"failure": null' in line for line in said) == 20 * len(quick), said


def test_each_endpoint_gets_strange_requests(tmp_path: Path) -> None:
    make_project(tmp_path)
    project = open_project(tmp_path)
    routes = Server(project, Rules("127.0.0.1", 8421, None)).app.routes
    paths = {f"{'POST' if 'POST' in r.methods else 'GET'} {r.path}" for r in routes}  # type: ignore[attr-defined]
    assert paths == set(ENDPOINTS)
    project.close()
