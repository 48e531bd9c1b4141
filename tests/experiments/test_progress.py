"""The live table: what is running, what is left, and when it will end."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from spinal.experiments import Protocol, Run
from spinal.experiments.forecast import seconds_left
from spinal.experiments.progress import Progress
from tests.runs.made import made_round, write_rounds

PROTOCOL = Protocol("tiny", "Tiny", initial=10, batch=5, rounds=3)


def made_up(out: Path, seed: int, seconds: Sequence[float] = (), method: str = "random") -> Run:
    """A run whose rounds took these seconds."""
    run = Run(PROTOCOL, method, "random" if method == "random" else "max-entropy", seed, out)
    rounds = [
        made_round(i, 10 + 5 * i, 0.5 + i / 10, seconds={"network": s / 2, "rest": s / 2})
        for i, s in enumerate(seconds)
    ]
    write_rounds(run.folder, rounds)
    return run


def forecast(runs: list[Run], here: int, elapsed: float, workers: int) -> float | None:
    """With the rounds of the first ``here`` runs done in ``elapsed`` seconds."""
    rounds = [(run, run.rounds()) for run in runs]
    left = [run for run in runs if not run.is_finished]
    lines = [line for _, lines in rounds[:here] for line in lines]
    return seconds_left(left, rounds, lines, elapsed, workers)


def test_rounds_cost_what_they_cost_with_another_seed(tmp_path: Path) -> None:
    runs = [made_up(tmp_path, 0, [1, 2, 3, 4]), made_up(tmp_path, 1, [1, 2])]
    # 13 seconds were counted in 26; 3 + 4 are to come.
    assert forecast(runs, 2, 26.0, 1) == pytest.approx(14.0)


def test_rounds_that_nobody_knows_cost_what_the_last_did(tmp_path: Path) -> None:
    runs = [made_up(tmp_path, 0, [1, 2])]
    assert forecast(runs, 1, 3.0, 1) == pytest.approx(4.0)


def test_methods_that_nobody_knows_cost_the_mean(tmp_path: Path) -> None:
    runs = [made_up(tmp_path, 0, [2, 2, 2, 2]), made_up(tmp_path, 0, method="deterministic")]
    assert forecast(runs, 1, 8.0, 1) == pytest.approx(8.0)


def test_workers_share_what_can_be_shared(tmp_path: Path) -> None:
    even = [made_up(tmp_path / "even", i, [1, 1, 1, 1] if i < 2 else []) for i in range(4)]
    assert forecast(even, 2, 4.0, 2) == pytest.approx(4.0)
    # One run is left: a second worker does not help.
    assert forecast(even[:3], 2, 4.0, 2) == pytest.approx(4.0)


def test_nothing_is_forecast_from_nothing(tmp_path: Path) -> None:
    assert forecast([made_up(tmp_path, 0), made_up(tmp_path, 1, [1])], 1, 9.0, 2) is None


def shown(progress: Progress) -> str:
    progress.console.print(progress.table())
    return progress.console.file.getvalue()  # type: ignore[attr-defined]


def terminal(height: int = 50) -> Console:
    return Console(file=io.StringIO(), width=120, height=height, color_system=None)


def test_the_table_says_who_is_at_work_and_what_is_left(tmp_path: Path) -> None:
    runs = [made_up(tmp_path, 0, [1, 1, 1, 1]), made_up(tmp_path, 1), made_up(tmp_path, 2)]
    runs += [made_up(tmp_path, 3), made_up(tmp_path, 4)]
    progress = Progress(runs, 2, terminal())
    assert progress.states() == ["done", "running", "running", "waiting", "waiting"]
    progress.ended(runs[1], "no [space] left")
    assert progress.states() == ["done", "failed", "running", "running", "waiting"]
    made_up(tmp_path, 2, [1, 1])
    text = shown(progress)
    assert "tiny random seed 1 failed: no [space] left" in text
    assert "2 running, 1 failed, 1 waiting, 1 done; 6 of 20 rounds, about 0:00:0" in text
    assert "until " in text
    assert "60.0%" in text
    made_up(tmp_path, 2, [1, 1, 1, 1])
    progress.ended(runs[2], None)
    assert progress.states() == ["done", "failed", "done", "running", "running"]


def test_a_long_table_fits_the_terminal(tmp_path: Path) -> None:
    runs = [made_up(tmp_path, i, [1, 1, 1, 1] if i < 30 else []) for i in range(60)]
    lines = shown(Progress(runs, 2, terminal(height=20))).splitlines()
    assert len(lines) <= 20
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["running", "tiny", "random", str(i)] for i in (30, 31)
    ]
    assert lines[-1].startswith("2 running, 28 waiting, 30 done; 120 of 240 rounds")
    assert lines[-2] == "and 44 more"


def test_damaged_rounds_do_not_disturb_the_table(tmp_path: Path) -> None:
    run = made_up(tmp_path, 0)
    (run.folder / "rounds.jsonl").write_text("not json")
    assert "1 running; 0 of 4 rounds" in shown(Progress([run], 1, terminal()))


def test_elsewhere_rounds_are_lines(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    run = made_up(tmp_path, 0, [1])
    with Progress([run], 1, console) as progress:
        made_up(tmp_path, 0, [1, 1])
        progress.ended(replace(run, seed=1), "broken")
        time.sleep(0.01)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "1 running; 1 of 4 rounds"
    assert lines[1] == "tiny random seed 1 failed: broken"
    assert lines[2].startswith("tiny random seed 0: 15 labels, accuracy 0.6000, about 0:00:0")
