"""Provenance: a run says what made it, and what made its first rounds."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import spinal
from spinal.experiments import Protocol, Run, execute
from spinal.experiments.protocol import NetworkProtocol, tomllib
from spinal.runs.origin import commit, origin, processor

PROTOCOL = Protocol(
    "tiny", "Tiny", initial=10, batch=5, rounds=0, pool=60, test=50,
    network=NetworkProtocol(width=0.25, training={"min-steps": 5, "max-steps": 5}),
)  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_and_changes_since(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert commit(package) == {}  # no repository
    git(tmp_path, "init", "-q")
    assert commit(package) == {}  # a repository that does not know the package
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-q", "-m", "First")
    head = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "notes.txt").write_text("beside the package")
    assert commit(package) == {"commit": head, "changed": False}
    (package / "new.py").write_text("")
    assert commit(package) == {"commit": head, "changed": True}


def test_without_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert commit() == {}


def test_the_processor_by_its_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Fast (R) CPU: 2 GHz\nflags\t: fpu\n")
    assert processor(cpuinfo) == "Fast (R) CPU: 2 GHz"
    cpuinfo.write_text("processor\t: 0\n")  # as on other architectures
    assert processor(cpuinfo)


def test_a_run_names_what_made_each_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(PROTOCOL, "random", "random", 0, tmp_path)
    execute(run)
    kept = tomllib.loads((run.folder / "run.toml").read_text())
    assert {"versions": kept["versions"], "machine": kept["machine"]} == origin()
    assert kept["versions"]["spinal"] == spinal.__version__
    assert kept["versions"]["numpy"] == np.__version__
    assert kept["versions"]["torch"] == torch.__version__
    assert kept["versions"]["python"] == platform.python_version()
    newer = {"versions": {"spinal": "99"}, "machine": {"system": "another"}}
    monkeypatch.setattr("spinal.runs.folder.origin", lambda: newer)
    execute(run)  # nothing was left to do
    assert tomllib.loads((run.folder / "run.toml").read_text()) == kept
    execute(replace(run, protocol=replace(PROTOCOL, rounds=1)))
    again = tomllib.loads((run.folder / "run.toml").read_text())
    assert again["earlier"] == [{"rounds": 1, **origin()}]
    assert again["versions"] == {"spinal": "99"}
