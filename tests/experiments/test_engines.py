"""Engines: whatever executes the runs, and whatever dies meanwhile, the results are the same."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spinal.data import load_dataset
from spinal.errors import SpinalError
from spinal.experiments import Protocol, Run, make_runs, run_grid
from spinal.experiments.engines import JoblibEngine, RayEngine, attempts, cluster, make_engine
from spinal.experiments.engines.attempts import CrashCounter, attempt
from spinal.experiments.protocol import NetworkProtocol
from tests.cluster import children, raylet, sigkill, two_nodes  # noqa: F401
from tests.runs.made import made_round, write_rounds

PROTOCOL = Protocol(
    "tiny", "Tiny", initial=10, batch=5, rounds=6, pool=60, test=50,
    network=NetworkProtocol(width=0.25, training={"min-steps": 40, "max-steps": 40}),
    posterior={"recipe": {"sums": [4, 4], "fit": {"steps": 40}}},
)  # fmt: skip
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def grid(out: Path) -> list[Run]:
    return make_runs([PROTOCOL], ["spn-cnn", "deterministic"], [], [0, 1], out)


def outcomes(runs: list[Run]) -> list[Any]:
    """All that was measured and picked, to the last digit; only time may differ."""
    return [[replace(record, seconds={}) for record in run.rounds()] for run in runs]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    runs = grid(tmp_path_factory.mktemp("one-worker"))
    run_grid(runs, workers=1)
    return outcomes(runs)


def under_way(runs: list[Run], parent: int) -> tuple[int, Run] | None:
    """A child of a process that is in the middle of one of the runs, whose lock it holds."""
    locks = {str(run.folder / ".lock"): run for run in runs}
    for child in children(parent):
        try:
            opened = {os.readlink(path) for path in Path(f"/proc/{child}/fd").iterdir()}
        except OSError:
            continue
        for lock in opened & locks.keys():
            if 1 <= len(locks[lock].rounds()) <= PROTOCOL.rounds:
                return child, locks[lock]
    return None


class Killer(threading.Thread):
    """Waits until a child of a process is in the middle of a run, and kills.

    Attributes:
        victim: the run that was under way.
        rounds: how many of its rounds were done.
    """

    def __init__(self, runs: list[Run], parent: int, kill: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self.runs, self.parent, self.kill = runs, parent, kill
        self.victim: Run | None = None
        self.rounds = 0

    def run(self) -> None:
        while (found := under_way(self.runs, self.parent)) is None:
            time.sleep(0.02)
        worker, self.victim = found
        self.kill(worker)
        self.rounds = len(self.victim.rounds())

    def check(self) -> None:
        self.join(1)
        assert self.victim is not None
        assert 1 <= self.rounds <= PROTOCOL.rounds, "it was not in the middle of the run"


@pytest.mark.long
@linux
def test_a_worker_that_dies_here_is_replaced(expected: list[Any], tmp_path: Path) -> None:
    runs = grid(tmp_path)
    killer = Killer(runs, os.getpid(), sigkill)
    killer.start()
    run_grid(runs, workers=2)
    killer.check()
    assert outcomes(runs) == expected


@pytest.mark.long
@linux
def test_workers_and_nodes_that_die_are_replaced(
    expected: list[Any],
    two_nodes: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    runs = grid(tmp_path)
    here, there = raylet(two_nodes.head_node), raylet(two_nodes.worker_nodes.copy().pop())

    def kill_node(worker: int) -> None:
        for process in (there, *children(there)):
            sigkill(process)

    killers = [Killer(runs, here, sigkill), Killer(runs, there, kill_node)]
    for killer in killers:
        killer.start()
    run_grid(runs, engine="ray", address=two_nodes.address)
    for killer in killers:
        killer.check()
    assert outcomes(runs) == expected
    assert not list(tmp_path.glob(".grid-*"))


class Poison:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


@pytest.mark.long
def test_a_run_that_kills_its_workers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "MAX_CRASHES", 2)
    runs = grid(tmp_path)[:2]
    ended = list(JoblibEngine(2).execute(runs, {"digits": Poison()}))  # type: ignore[dict-item]
    assert [run for run, _ in ended] == runs
    assert all(message and "workers died 2 times in round 0" in message for _, message in ended)


def test_crashes_in_other_rounds_are_forgiven(tmp_path: Path) -> None:
    run, crashes = grid(tmp_path)[0], CrashCounter()
    for number in range(4):
        write_rounds(run.folder, [made_round(i, 10, 0.5) for i in range(number)])
        assert crashes.count(run) is None
        assert crashes.count(run) is None
    assert "in round 3" in (crashes.count(run) or "")


def test_unexpected_errors_are_kept_with_the_run(tmp_path: Path) -> None:
    run = replace(grid(tmp_path)[1], protocol=replace(PROTOCOL, rounds=0))
    message = attempt(run, object(), None) or ""  # type: ignore[arg-type]
    kept = run.folder / "error.txt"
    assert "AttributeError" in message
    assert str(kept) in message
    assert "Traceback" in kept.read_text()
    assert attempt(run, load_dataset("digits"), None) is None
    assert run.is_finished
    assert not kept.exists()


def test_a_node_that_does_not_share_the_folder_says_so(tmp_path: Path) -> None:
    run = grid(tmp_path)[0]
    message = cluster._attempt(run, load_dataset("digits"), None, 0.0, ".no-such-mark")
    assert "all nodes share" in (message or "")
    assert not run.folder.exists()


def test_ray_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SpinalError, match=r"pip install 'spinal\[ray\]'"):
        RayEngine()


def test_wrong_engines_are_refused() -> None:
    with pytest.raises(SpinalError, match="no engine 'slurm': there are joblib, ray"):
        make_engine("slurm")
    with pytest.raises(SpinalError, match="an address is for --engine ray"):
        make_engine("joblib", address="10.0.0.1:6379")


def test_a_cluster_that_is_not_there_is_an_error() -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "not-an-address"):
        with (
            pytest.raises(SpinalError, match=f"no Ray cluster at {address}"),
            make_engine("ray", address=address),
        ):
            pass
