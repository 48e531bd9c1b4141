"""Folders of runs: one process at a time, one set of settings, and what made each part."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.errors import FileFormatError, SpinalError
from spinal.runs import RunBusyError, RunFolder, read_settings

SETTINGS = {"seed": 0, "protocol": {"batch": 5, "rounds": 3, "training": {"steps": 20}}}


def folder(path: Path, **protocol: object) -> RunFolder:
    settings = {"seed": 0, "protocol": SETTINGS["protocol"] | protocol}  # type: ignore[operator]
    return RunFolder(path / "run", settings=settings, free=("protocol.rounds",))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = folder(tmp_path), folder(tmp_path)
    with first.lock():
        first.append({"a": 1})
        with pytest.raises(RunBusyError, match=r"rounds\.jsonl: another process"), second.lock():
            pass
    with second.lock():
        second.append({"b": 2})
    assert first.lines() == [{"a": 1}, {"b": 2}]


def test_folders_with_other_locks_do_not_wait(tmp_path: Path) -> None:
    one, other = (RunFolder(tmp_path, name, lock_name=f".{name}.lock") for name in ("a", "b"))
    with one.lock(), other.lock():
        one.append({"a": 1})
    assert other.lines() == []


def test_a_dataset_is_the_same_by_any_spelling(tmp_path: Path) -> None:
    first = folder(tmp_path, dataset="cifar10")
    with first.lock():
        first.write_settings()
    folder(tmp_path, dataset="CIFAR-10").check_settings()
    with pytest.raises(SpinalError, match="dataset was 'cifar10', is 'svhn'"):
        folder(tmp_path, dataset="svhn").check_settings()


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    first = folder(tmp_path)
    with first.lock():
        first.check_settings()
        first.write_settings()
    folder(tmp_path, rounds=9).check_settings()  # free
    with pytest.raises(
        SpinalError,
        match=r"protocol\.batch was 5, is 6; protocol\.training\.steps was 20, is None",
    ):
        folder(tmp_path, batch=6, training={}).check_settings()


def test_what_made_the_first_lines_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder(tmp_path)
    for number in range(4):
        made = {"versions": {"spinal": str(number // 2)}, "machine": {"system": "x"}}
        monkeypatch.setattr("spinal.runs.folder.origin", lambda made=made: made)
        with run.lock():
            run.write_settings()
            run.append({"round": number})
    settings = read_settings(run.path)
    assert settings["versions"] == {"spinal": "1"}
    assert settings["earlier"] == [
        {"rounds": 2, "versions": {"spinal": "0"}, "machine": {"system": "x"}}
    ]


def test_damaged_settings_are_named(tmp_path: Path) -> None:
    run = folder(tmp_path)
    with run.lock():
        (run.path / "run.toml").write_text("seed = ")
        with pytest.raises(FileFormatError, match=r"run\.toml: damaged"):
            run.check_settings()
