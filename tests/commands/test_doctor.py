"""`spinal doctor`, and what a shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import spinal
from spinal.commands import doctor
from spinal.commands.completion import complete_protocol
from spinal.experiments import protocol_names


def test_it_shows_versions_devices_and_data(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    doctor.doctor(tmp_path)
    shown = capsys.readouterr().out
    for word in (
        spinal.__version__, metadata.version("torch"), "cpu", "OMP_NUM_THREADS=1", str(tmp_path),
        "built in", "spinal datasets mnist",
    ):  # fmt: skip
        assert word in shown


def test_what_is_missing_comes_with_the_command_that_gets_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name != "optuna")
    doctor.doctor()
    shown = capsys.readouterr().out
    assert "optuna: pip install 'spinal[tune]'" in shown
    assert "pip install 'spinal[label]'" not in shown


def test_without_metadata_the_extras_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "metadata", missing)
    ((_, state, command),) = doctor._extras()
    assert state == "unknown"
    assert "pip install ." in command


def test_protocols_and_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").touch()
    assert sorted(complete_protocol("")) == sorted([*protocol_names(), "mine.toml"])


def test_names_are_completed_without_torch() -> None:
    code = (
        "import sys, spinal.commands.completion as c\n"
        "c.complete_protocol(''), c.complete_method(''), c.complete_acquisition('')\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": "spinal run digits --method spn", "COMP_CWORD": "4"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "spinal run digits --method spn"}),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "spinal run digits --method spn",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
        ),
    ],
)
def test_shells_complete_names(shell: str, environment: dict[str, str]) -> None:
    code = "import sys; sys.argv = ['spinal']; from spinal.commands.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment, "_SPINAL_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
    )
    assert "spn-cnn" in done.stdout
    assert "spn-batchbald" in done.stdout
    assert "mc-dropout" not in done.stdout  # it does not begin with spn
