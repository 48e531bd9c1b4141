"""Speed and memory of the paper's DGC-SPN: spinal, two other libraries, and the bare arithmetic.

    python benchmarks/circuits.py --libspn PYTHON --deeprob PYTHON

A library whose Python is not given (or set as ``SPINAL_LIBSPN_PYTHON``, ``SPINAL_DEEPROB_PYTHON``)
is left out. ``benchmarks/README.md`` explains the environments and the measurements.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import ROOT, commit, processor

PEERS = ROOT / "benchmarks/peers"
GRIDS = ((16, 8), (16, 32))
BATCHES = (64, 1000)
PASSES = {"step": "training step, ms", "forward": "forward, ms"}
SEED = 0
SPINAL, LIBSPN, DEEPROB, FLOOR = "spinal", "libspn-keras", "DeeProb-kit", "matrix products"
MODULES = {
    SPINAL: "circuit_spinal",
    LIBSPN: "circuit_libspn",
    DEEPROB: "circuit_deeprob",
    FLOOR: "circuit_matmul",
}
#: Seconds that a contender has before the next one's turn: a fit is hundreds of steps in a row, so
#: that the caches which others leave behind should not count.
BURST = 0.5
#: Passes slower than this (in seconds) have no warm-up, and are repeated within `PATIENCE` only.
SLOW = 3.0
PATIENCE = 15.0


@dataclass(frozen=True)
class Target:
    """A bound on a ratio: of a peer's number to spinal's (`at_least`), or the other way round."""

    what: str
    batch: int
    peer: str
    factor: float
    at_least: bool = True

    def __str__(self) -> str:
        what = "peak memory" if self.what == "memory" else "training step"
        if self.what == "memory":
            bound = f"at most 1/{self.factor:g} of {self.peer}'s"
        elif self.at_least:
            bound = f"at least {self.factor:g} x faster than {self.peer}"
        else:
            bound = f"at most {self.factor:g} x the bare {self.peer}"
        return f"{what}, batch {self.batch:,}: {bound}"


TARGETS = (
    Target("step", 64, LIBSPN, 4),
    Target("step", 64, DEEPROB, 30),
    Target("step", 1000, FLOOR, 3, at_least=False),
    Target("memory", 64, DEEPROB, 2),
    Target("memory", 1000, DEEPROB, 2),
)


class Worker:
    """A contender in a process of its own, with one thread."""

    def __init__(self, python: str, module: str) -> None:
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(threads, "1"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        if module == MODULES[SPINAL]:
            environment["PYTHONPATH"] = str(ROOT)
        self.process = subprocess.Popen(
            [python, str(PEERS / "worker.py"), module],
            env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, do: str, **arguments: Any) -> Any:
        """Send one request, and wait for its answer."""
        print(json.dumps({"do": do, **arguments}), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self.process.args)} ended while asked to {do}")
        return json.loads(answer)


@contextmanager
def working(python: str, name: str) -> Iterator[Worker]:
    """A worker, ended with the block."""
    worker = Worker(python, MODULES[name])
    try:
        yield worker
    finally:
        worker.process.stdin.close()
        worker.process.wait()


def measure_memory(python: str, name: str, grid: tuple[int, int], batch: int) -> float:
    """Megabytes that one training step takes, in a fresh process."""
    with working(python, name) as worker:
        worker.ask("build", grid=grid, seed=SEED)
        return worker.ask("memory", batch=batch)


def assert_parity(workers: dict[str, Worker], grid: tuple[int, int]) -> dict[str, Any]:
    """The largest differences to spinal, of values and (relative) of gradients; all must be small.

    float32 resolves 6e-5 at -800, where the values of the larger grid are.
    """
    answers = {
        name: worker.ask("parity", points=32, seed=SEED + 1)
        for name, worker in workers.items()
        if name != FLOOR
    }
    ours = {key: np.array(value) for key, value in answers.pop(SPINAL).items()}
    differences = {}
    for name, answer in answers.items():
        value = np.abs(np.array(answer["values"]) - ours["values"]).max()
        gradient = np.abs(np.array(answer["gradient"]) - ours["gradient"]).max()
        gradient /= np.abs(ours["gradient"]).max()
        assert value < 1e-3, f"{name} differs from spinal by {value} in log p(z, c)"
        assert gradient < 1e-2, f"{name} differs from spinal by {gradient} in gradients"
        differences[name] = {"log_joint": float(value), "gradient": float(gradient)}
    return differences


def measure_times(
    workers: dict[str, Worker], what: str, batch: int, repeats: int
) -> dict[str, list[float]]:
    """Milliseconds per pass: one repeat of each contender in turn, so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in workers}
    inner = dict.fromkeys(workers, 1)
    for name, worker in workers.items():
        seconds = worker.ask("time", what=what, batch=batch, times=1)
        if seconds > SLOW:
            times[name].append(1e3 * seconds)
            continue
        seconds = worker.ask("time", what=what, batch=batch, times=3)
        inner[name] = max(1, round(BURST / max(seconds, 1e-4)))
    for _ in range(repeats):
        for name, worker in workers.items():
            slow = times[name] and times[name][0] > 1e3 * SLOW
            if not slow or sum(times[name]) < 1e3 * PATIENCE:
                seconds = worker.ask("time", what=what, batch=batch, times=inner[name])
                times[name].append(1e3 * seconds)
    return times


def measure(
    pythons: dict[str, str], repeats: int, memory_limit: float
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """All rows, the parity differences by grid, and the versions of the contenders."""
    rows, parity = [], {}
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(working(python, name)) for name, python in pythons.items()
        }
        versions = {name: worker.ask("versions") for name, worker in workers.items()}
        for grid in GRIDS:
            for worker in workers.values():
                worker.ask("build", grid=grid, seed=SEED)
            parity["x".join(map(str, grid))] = assert_parity(workers, grid)
            small: dict[str, float] = {}
            for batch in BATCHES:
                limit = min(memory_limit, 0.9 * available_memory())
                able = {
                    name: worker
                    for name, worker in workers.items()
                    if small.get(name, 0) * batch / BATCHES[0] < limit
                }
                case = {"grid": grid, "batch": batch}
                memory = {
                    name: measure_memory(pythons[name], name, grid, batch)
                    for name in able
                    if name != FLOOR
                }
                small = small or memory
                for what in PASSES:
                    times = measure_times(able, what, batch, repeats)
                    medians = {name: statistics.median(t) for name, t in times.items()}
                    rows.append({**case, "what": what, "median": medians, "all": times})
                    progress(rows[-1])
                rows.append({**case, "what": "memory", "median": memory})
                progress(rows[-1])
    return rows, parity, versions


def progress(row: dict[str, Any]) -> None:
    """Tell what has been measured."""
    numbers = ", ".join(f"{name} {value:.1f}" for name, value in row["median"].items())
    print(*row["grid"], row["batch"], row["what"], numbers, sep="  ", file=sys.stderr)


def available_memory() -> float:
    """Megabytes that can be had without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    kibibytes = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return kibibytes * 1024 / 1e6


def table(rows: list[dict[str, Any]], names: list[str]) -> str:
    """The rows in Markdown, each number with its ratio to spinal's."""
    head = ["grid", "batch", "", *names]
    lines = ["| " + " | ".join(head) + " |", "|---" * 2 + "|---" + "|--:" * len(names) + "|"]
    for row in rows:
        ours = row["median"][SPINAL]
        cells = []
        for name in names:
            value = row["median"].get(name)
            if value is None:
                cells.append("")
            elif name == SPINAL:
                cells.append(f"**{value:,.1f}**")
            else:
                ratio = value / ours
                shown = f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
                cells.append(f"{value:,.1f} ({shown} x)")
        what = PASSES.get(row["what"], "peak memory of a step, MB")
        grid = " x ".join(map(str, row["grid"]))
        lines.append("| " + " | ".join([grid, f"{row['batch']:,}", what, *cells]) + " |")
    return "\n".join(lines)


def judge(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every target on every grid: met, not met, or not measured."""
    for target in TARGETS:
        for row in rows:
            if (row["what"], row["batch"]) != (target.what, target.batch):
                continue
            ours, theirs = row["median"][SPINAL], row["median"].get(target.peer)
            grid = " x ".join(map(str, row["grid"]))
            if theirs is None:
                yield {"target": str(target), "grid": grid, "ratio": None, "met": None}
                continue
            ratio = theirs / ours if target.at_least else ours / theirs
            met = ratio >= target.factor if target.at_least else ratio <= target.factor
            yield {"target": str(target), "grid": grid, "ratio": ratio, "met": met}


def verdict(judgement: dict[str, Any]) -> str:
    """One line about one target."""
    met = {True: "met", False: "NOT met", None: "not measured"}[judgement["met"]]
    ratio = "" if judgement["ratio"] is None else f" ({judgement['ratio']:.1f})"
    return f"- {judgement['target']}, {judgement['grid']}: {met}{ratio}"


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description="Speed and memory of the paper's DGC-SPN.")
    parser.add_argument("--libspn", default=os.environ.get("SPINAL_LIBSPN_PYTHON"))
    parser.add_argument("--deeprob", default=os.environ.get("SPINAL_DEEPROB_PYTHON"))
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument(
        "--memory-limit", type=float, default=16, help="GB; contenders that would take more sit out"
    )
    parser.add_argument("--save", type=Path, help="write the table to SAVE.md and SAVE.json")
    options = parser.parse_args()

    options_of_peers = {"--libspn": options.libspn, "--deeprob": options.deeprob}
    given = {SPINAL: sys.executable, LIBSPN: options.libspn, DEEPROB: options.deeprob}
    pythons = {name: python for name, python in given.items() if python} | {FLOOR: sys.executable}
    left_out = [f"{name}: left out, no Python given for it." for name in given if not given[name]]

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the workers inherit it
    start = time.time()
    measured_commit = commit("spinal/circuits")
    rows, parity, versions = measure(pythons, options.repeats, 1000 * options.memory_limit)
    judgements = list(judge(rows))
    text = "\n".join(
        [
            table(rows, list(pythons)),
            "",
            *left_out,
            *map(verdict, judgements),
            "",
            f"One thread of {processor()}, process-CPU time, medians of interleaved repeats.",
            f"Measured in {time.time() - start:.0f} s at commit {measured_commit}.",
        ]
    )
    print(text)
    if options.save:
        peers = [f"{flag} PYTHON" for flag, python in options_of_peers.items() if python]
        command = ["python benchmarks/circuits.py", *peers, f"--repeats {options.repeats}"]
        record = {
            "command": " ".join(command),
            "commit": measured_commit,
            "cpu": processor(),
            "versions": versions,
            "parity": parity,
            "targets": judgements,
            "rows": rows,
        }
        options.save.parent.mkdir(parents=True, exist_ok=True)
        name = options.save.name
        options.save.with_name(name + ".json").write_text(json.dumps(record, indent=1) + "\n")
        heading = "# Speed and memory of the paper's DGC-SPN\n\n"
        options.save.with_name(name + ".md").write_text(
            heading + f"`{record['command']}`\n\n" + text + "\n"
        )


if __name__ == "__main__":
    main()
