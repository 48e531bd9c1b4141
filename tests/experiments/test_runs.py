"""Runs on disk: paired, repeatable, and going on after any interruption to the same result."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import filelock
import numpy as np
import pytest
import tomli_w

from spinal.data import Splits, load_dataset
from spinal.errors import FileFormatError, SpinalError
from spinal.experiments import Protocol, Run, execute, load_protocol, make_runs, run_grid
from spinal.experiments.grid import left_out
from spinal.experiments.protocol import NetworkProtocol
from spinal.runs import RunBusyError
from spinal.runs.asked import Asked

PROTOCOL = Protocol(
    "tiny", "Tiny", initial=10, batch=5, rounds=3, pool=60, test=50,
    network=NetworkProtocol(width=0.25, training={"min-steps": 20, "max-steps": 20}),
    posterior={"recipe": {"sums": [4, 4], "fit": {"steps": 20}}},
)  # fmt: skip


def outcome(run: Run) -> list[tuple]:
    asked = Asked.load(run.folder)
    assert asked is not None
    lines = [
        (record.labels, record.accuracy, record.nll, record.advice, record.picks)
        for record in run.rounds()
    ]
    return [*lines, (asked.images.tolist(), asked.labels.tolist(), asked.classes)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(PROTOCOL, "spn-cnn", "max-entropy", 0, tmp_path_factory.mktemp("runs"))
    execute(run)
    return run


def test_a_run_writes_its_rounds(done: Run) -> None:
    assert done.is_finished
    lines = done.rounds()
    assert [line.labels for line in lines] == [10, 15, 20, 25]
    assert [len(line.picks) for line in lines] == [5, 5, 5, 0]
    assert set(lines[0].seconds) == {"network", "features", "posterior", "scoring", "choice"}
    assert 0 <= lines[0].network_accuracy <= 1
    assert lines[0].advice is None
    assert lines[2].advice is not None
    assert lines[2].advice["more"] == 5
    assert lines[0].logistic_accuracy is not None
    assert 0 <= lines[0].logistic_accuracy <= 1
    assert lines[0].fitted_share is not None
    assert 0 <= lines[0].fitted_share <= 1
    for line in lines:
        assert line.class_counts is not None
        assert sum(line.class_counts) == line.labels
        right = line.right_points()
        assert right is not None
        assert right.mean() == line.accuracy
        assert line.shares is not None
        assert sum(line.shares.values()) == pytest.approx(1, abs=1e-3)
    picks = [p for line in lines for p in line.picks]
    splits = Splits.load(done.out / "tiny" / "splits" / "seed-0.json")
    assert len(set(picks)) == 15
    assert set(picks) <= set(splits.pool.tolist())


def test_a_run_keeps_the_images_that_it_asked_for_first(done: Run) -> None:
    asked, digits = Asked.load(done.folder), load_dataset("digits")
    picks = [p for line in done.rounds() for p in line.picks]
    assert asked is not None
    np.testing.assert_array_equal(asked.images, digits.train_images[picks])
    np.testing.assert_array_equal(asked.labels, digits.train_labels[picks])
    assert asked.classes == digits.classes


def test_the_same_seed_gives_the_same_run(done: Run, tmp_path: Path) -> None:
    again = replace(done, out=tmp_path)
    execute(again)
    assert outcome(again) == outcome(done)


def test_methods_start_from_the_same_network_and_labels(done: Run, tmp_path: Path) -> None:
    other = Run(replace(PROTOCOL, rounds=0), "random", "random", 0, tmp_path)
    execute(other)
    first, second = done.rounds()[0], other.rounds()[0]
    assert first.network_accuracy == second.network_accuracy
    assert first.network_nll == second.network_nll


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_an_interrupted_run_goes_on_to_the_same_result(
    done: Run, keep: int, tmp_path: Path
) -> None:
    run = replace(done, out=tmp_path)
    run.folder.mkdir(parents=True)
    lines = (done.folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (run.folder / "rounds.jsonl").write_text("".join(lines[:keep]))
    (run.folder / "rounds.jsonl.part").write_text('{"round": 1, "lab')  # cut off while writing
    shutil.copytree(done.folder / "checkpoint", run.folder / "checkpoint")
    execute(run)
    assert outcome(run) == outcome(done)


@pytest.mark.parametrize("retrain", ["scratch", "continue"])
def test_reserved_points_are_kept_over_an_interruption(retrain: str, tmp_path: Path) -> None:
    network = replace(PROTOCOL.network, retrain=retrain)  # type: ignore[arg-type]
    protocol = replace(PROTOCOL, network=network, posterior={"reserve": 2}, rounds=2)
    whole = Run(protocol, "spn-cnn", "margin", 0, tmp_path / "whole")
    execute(whole)
    part = Run(replace(protocol, rounds=1), "spn-cnn", "margin", 0, tmp_path / "part")
    execute(part)
    copied = Run(protocol, "spn-cnn", "margin", 0, tmp_path / "copied")
    copied.folder.mkdir(parents=True)
    shutil.copy(part.folder / "rounds.jsonl", copied.folder)  # without the checkpoint
    part = replace(part, protocol=protocol)
    for run in (part, copied):
        execute(run)
        assert outcome(run) == outcome(whole)


def test_continued_training_goes_on_to_the_same_result(tmp_path: Path) -> None:
    protocol = replace(PROTOCOL, network=replace(PROTOCOL.network, retrain="continue"))
    whole = Run(protocol, "spn-cnn", "max-entropy", 0, tmp_path / "whole")
    execute(whole)
    parts = replace(whole, out=tmp_path / "parts")
    execute(replace(parts, protocol=replace(protocol, rounds=1)))
    execute(parts)
    assert outcome(parts) == outcome(whole)
    behind = replace(whole, out=tmp_path / "behind")
    execute(replace(behind, protocol=replace(protocol, rounds=2)))
    path = behind.folder / "rounds.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))  # killed before it
    execute(behind)
    assert outcome(behind) == outcome(whole)
    copied = replace(whole, out=tmp_path / "copied")
    copied.folder.mkdir(parents=True)
    shutil.copy(behind.folder / "rounds.jsonl", copied.folder)  # without the checkpoint
    lines = (copied.folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (copied.folder / "rounds.jsonl").write_text("".join(lines[:2]))
    execute(copied)
    assert outcome(copied) == outcome(whole)


def test_a_damaged_checkpoint_is_not_continued(tmp_path: Path) -> None:
    protocol = replace(PROTOCOL, rounds=0, network=replace(PROTOCOL.network, retrain="continue"))
    run = Run(protocol, "spn-cnn", "max-entropy", 0, tmp_path)
    execute(run)
    rng = np.random.default_rng(0)
    for path in sorted((run.folder / "checkpoint").iterdir()):
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"damaged .* delete .*checkpoint"):
            execute(replace(run, protocol=replace(protocol, rounds=1)))
        path.write_bytes(whole)


def test_more_rounds_go_on_from_fewer(done: Run, tmp_path: Path) -> None:
    run = replace(done, out=tmp_path)
    execute(replace(run, protocol=replace(PROTOCOL, rounds=1)))
    execute(run)
    assert outcome(run) == outcome(done)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.long
def test_killed_five_times_at_random_moments_the_picks_are_the_same(
    done: Run, tmp_path: Path
) -> None:
    toml = tmp_path / "tiny.toml"
    toml.write_text(tomli_w.dumps(PROTOCOL.to_mapping()))
    command = [
        sys.executable, "-m", "spinal", "run", str(toml), "--out", str(tmp_path / "runs"),
        "--workers", "1", "--acquisition", "max-entropy",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    run = replace(done, out=tmp_path / "runs")

    def progress() -> tuple[bool, int]:
        return (run.folder / "run.toml").exists(), len(run.rounds())

    killed = 0
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        before = progress()
        while process.poll() is None and progress() == before:
            time.sleep(0.02)
        time.sleep(rng.random())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert killed >= 3
    assert outcome(run) == outcome(done)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_workers_leave_with_the_process_that_started_them(tmp_path: Path) -> None:
    toml = tmp_path / "long.toml"
    toml.write_text(tomli_w.dumps(replace(PROTOCOL, name="long", rounds=20).to_mapping()))
    command = [
        sys.executable, "-m", "spinal", "run", str(toml), "--out", str(tmp_path / "runs"),
        "--workers", "2", "--seeds", "0,1",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    lock = tmp_path / "runs" / "long" / "spn-cnn-max-entropy" / "seed-0" / ".lock"
    while process.poll() is None and not lock.exists():
        time.sleep(0.1)
    process.kill()  # the process alone, not its workers
    process.wait()
    rounds = lock.with_name("rounds.jsonl")
    with filelock.FileLock(lock, timeout=20):  # held by a worker as long as there is one
        assert not rounds.exists() or len(rounds.read_text().splitlines()) <= 20


def test_a_second_process_is_refused(done: Run) -> None:
    with (
        filelock.FileLock(done.folder / ".lock"),
        pytest.raises(RunBusyError, match="another process"),
    ):
        execute(done)


def test_other_settings_in_the_same_folder_are_refused(done: Run) -> None:
    other = replace(done, protocol=replace(PROTOCOL, batch=6))
    with pytest.raises(SpinalError, match=r"protocol\.batch was 5, is 6"):
        execute(other)


def test_settings_of_other_methods_may_change(done: Run) -> None:
    def checked(**tables: dict[str, object]) -> None:
        changed = {k: {**getattr(PROTOCOL, k), **table} for k, table in tables.items()}
        replace(done, protocol=replace(PROTOCOL, **changed)).store.check_settings()  # type: ignore[arg-type]

    checked(posterior={"snapshots": 0.25}, acquisition={"labellings": 100})  # Ensemble, BatchBALD
    with pytest.raises(SpinalError, match=r"protocol\.posterior\.masks was None, is 7"):
        checked(posterior={"masks": 7})
    with pytest.raises(SpinalError, match=r"protocol\.acquisition\.power was None, is 2"):
        checked(acquisition={"power": 2.0})


def test_a_full_disk_loses_nothing(
    done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(done, out=tmp_path)
    execute(replace(run, protocol=replace(PROTOCOL, rounds=1)))
    before = (run.folder / "rounds.jsonl").read_text()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            execute(run)
    assert (run.folder / "rounds.jsonl").read_text() == before
    execute(run)
    assert outcome(run) == outcome(done)


def test_the_grid_does_all_and_skips_what_is_done(tmp_path: Path, capsys) -> None:
    protocol = replace(PROTOCOL, rounds=1)
    runs = make_runs(
        [protocol], ["random", "deterministic"], ["max-entropy", "margin"], [0, 1], tmp_path
    )
    assert len(runs) == 6  # random has no choice of acquisition function
    run_grid(runs, workers=2)
    assert all(run.is_finished for run in runs)
    written = {run.folder: (run.folder / "rounds.jsonl").stat().st_mtime_ns for run in runs}
    run_grid(runs, workers=2)
    assert written == {run.folder: (run.folder / "rounds.jsonl").stat().st_mtime_ns for run in runs}
    assert "tiny random seed 1: 15 labels" in capsys.readouterr().out


def test_a_failing_run_does_not_stop_the_others(tmp_path: Path) -> None:
    protocol = replace(PROTOCOL, rounds=0)
    runs = make_runs([protocol], ["random"], [], [0, 1, 2], tmp_path)
    damaged = runs[0].folder / "rounds.jsonl"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not json")
    execute(runs[1])
    (runs[2].folder / "checkpoint").mkdir(parents=True)
    in_the_way = runs[2].folder / "rounds.jsonl.part"
    in_the_way.mkdir()
    with pytest.raises(SpinalError, match="2 of 3 runs failed") as caught:
        run_grid(runs, workers=1)
    _, first, second = str(caught.value).splitlines()
    assert first.startswith("  tiny random seed 0: ")
    assert "damaged" in first
    assert second.startswith("  tiny random seed 2: IsADirectoryError")
    assert "Traceback" in (runs[2].folder / "error.txt").read_text()
    damaged.unlink()
    in_the_way.rmdir()
    run_grid(runs, workers=1)
    assert all(run.is_finished for run in runs)


def test_protocols_that_would_share_a_folder_are_refused(tmp_path: Path) -> None:
    other = replace(PROTOCOL, batch=6)
    assert len(make_runs([PROTOCOL, PROTOCOL], ["random"], [], [0], tmp_path)) == 1
    with pytest.raises(SpinalError, match="two different protocols are named 'tiny'"):
        make_runs([PROTOCOL, other], ["random"], [], [0], tmp_path)


def test_all_methods_leave_out_what_does_not_go_with_them(tmp_path: Path) -> None:
    digits, functions = load_protocol("digits"), ["variation-ratio", "bald"]
    runs = make_runs([digits], ["all"], functions, [0], tmp_path)
    pairs = {(run.method, run.acquisition) for run in runs}
    assert ("deterministic", "variation-ratio") in pairs
    assert ("spn-cnn", "bald") in pairs
    assert ("badge", "badge") in pairs
    assert ("random", "random") in pairs
    assert left_out(["all"], functions) == [
        ("spn-variance", "variation-ratio"), ("spn-variance", "bald"), ("logistic", "bald"),
        ("deterministic", "bald"),
    ]  # fmt: skip
    assert not pairs & set(left_out(["all"], functions))
    with pytest.raises(SpinalError, match="no method goes with 'bold': did you mean 'bald'"):
        make_runs([digits], ["all"], ["bold"], [0], tmp_path)


def test_seeds_by_default_are_as_many_as_in_the_paper(tmp_path: Path) -> None:
    protocols = [load_protocol("digits"), load_protocol("mnist")]
    runs = make_runs(protocols, ["random"], [], None, tmp_path)
    assert [(run.protocol.name, run.seed) for run in runs] == [
        ("digits", 0), ("mnist", 0), ("mnist", 1), ("mnist", 2), ("mnist", 3), ("mnist", 4),
    ]  # fmt: skip


def test_combinations_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpinalError, match="deterministic does not go with 'bald'"):
        make_runs([load_protocol("digits")], ["deterministic"], ["bald"], [0], tmp_path)
