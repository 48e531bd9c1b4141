"""Measurements on disk: one process at a time, one set of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.errors import FileFormatError
from spinal.experiments.measurements import Measurement
from spinal.experiments.uncertainty import Pair
from spinal.runs import RunBusyError, read_settings


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = (Measurement(Pair("pair"), 0, tmp_path) for _ in range(2))
    with first.working():
        with pytest.raises(RunBusyError, match="another process"), second.working():
            pass
        first.add({"method": "one"})
    with second.working():
        second.add({"method": "two"})
    assert [part["method"] for part in first.parts()] == ["one", "two"]
    assert read_settings(first.folder)["experiment"]["name"] == "pair"


def test_damaged_files_are_named(tmp_path: Path) -> None:
    measurement = Measurement(Pair("pair"), 0, tmp_path)
    with measurement.working():
        measurement.add({"method": "one"})
    path = measurement.folder / "parts.jsonl"
    path.write_text(path.read_text()[:5])
    with pytest.raises(FileFormatError, match=r"parts\.jsonl: damaged"):
        measurement.parts()
    (measurement.folder / "run.toml").write_text("seed = ")
    with (
        pytest.raises(FileFormatError, match=r"run\.toml: damaged"),
        measurement.working(),
    ):
        pass
