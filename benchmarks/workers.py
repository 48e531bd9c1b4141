"""Two workers compared with one: eight short runs on digits, as a user starts them.

Whole commands are timed, from the start of Python to its end. They take turns, so that other load
on the machine affects both equally. A time only counts if both picked the same points. Needs two
idle cores.

    python benchmarks/workers.py --save results/benchmarks/workers
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spinal.runs.origin import origin

METHODS, SEEDS = ("spn-cnn", "deterministic"), "0-3"


def timed(workers: int, rounds: int, engine: str) -> tuple[float, dict[str, Any]]:
    """Seconds of the eight runs, and what came out of each, but for its own seconds."""
    command = [sys.executable, "-m", "spinal", "run", "digits", "--seeds", SEEDS]
    for method in METHODS:
        command += ["--method", method]
    command += ["--rounds", str(rounds), "--workers", str(workers), "--engine", engine]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        found = {}
        for path in sorted(Path(folder).glob("**/rounds.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[str(path.relative_to(folder))] = [line | {"seconds": 0} for line in lines]
    return seconds, found


def measure(repeats: int, rounds: int, engine: str) -> list[tuple[float, float]]:
    """Seconds with one worker and with two, repeat by repeat; who begins takes turns."""
    pairs = []
    for repeat in range(repeats):
        took, found = {}, {}
        for workers in (1, 2) if repeat % 2 == 0 else (2, 1):
            took[workers], found[workers] = timed(workers, rounds, engine)
            print(f"repeat {repeat}, workers {workers}: {took[workers]:.1f} s", flush=True)
        assert len(found[1]) == 8
        assert found[1] == found[2], "the results depend on the number of workers"
        pairs.append((took[1], took[2]))
    return pairs


def summary(pairs: list[tuple[float, float]], rounds: int, engine: str, load: float) -> str:
    """The table, and what it was measured with."""
    ratio = statistics.median(one / two for one, two in pairs)
    made = origin()
    versions = made["versions"]
    commit = versions.get("commit", "unknown")[:7]
    changed = " with uncommitted changes" if versions.get("changed") else ""
    return "\n".join(
        [
            "# Two workers against one",
            "",
            f"Eight runs on digits ({' and '.join(METHODS)}, seeds {SEEDS}, {rounds + 1} rounds "
            f"each), `--engine {engine}`: seconds of the whole command, imports included. Picks "
            "and measurements are the same with both.",
            "",
            "| one worker | two workers | ratio |",
            "|--:|--:|--:|",
            *(f"| {one:.1f} s | {two:.1f} s | {one / two:.2f} |" for one, two in pairs),
            "",
            f"**Median ratio: {ratio:.2f}** (at least 1.7 is aimed at).",
            "",
            f"`python benchmarks/workers.py --rounds {rounds} --engine {engine}`, commit "
            f"{commit}{changed}; {made['machine']['processor']}, {os.cpu_count()} cores, load "
            f"{load:.1f} before the start; Python {versions['python']}, torch "
            f"{versions['torch']}, numpy {versions['numpy']}.",
            "",
        ]
    )


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10, help="of each run, after the first")
    parser.add_argument("--engine", default="joblib", help="joblib or ray")
    parser.add_argument("--save", type=Path, help="where to put the table, without .md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    text = summary(
        measure(options.repeats, options.rounds, options.engine),
        options.rounds, options.engine, load,
    )  # fmt: skip
    print(text)
    if options.save:
        options.save.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
