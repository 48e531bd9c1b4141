"""A round of active learning on pools of 10,000 to 1,000,000 vectors in a memory-mapped file.

python benchmarks/sizes.py --width 128 --folder /tmp --save results/benchmarks/sizes

For each method and size, a separate process maps the file, tells the learner labels, fits it and
asks for more. Seconds are given for each phase; memory is the peak of the process, with imports.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import commit, peak_memory, processor

from spinal import ActiveLearner, Pool

CLASSES, LABELS, BATCH = 10, 200, 10
#: Method and acquisition function; None for the default of the method.
CONTENDERS: dict[str, tuple[str, str | None]] = {
    "random": ("random", None),
    "deterministic, margin": ("deterministic", "margin"),
    "logistic, margin": ("logistic", "margin"),
    "spn-cnn, margin": ("spn-cnn", "margin"),
    "spn-cnn, auto": ("spn-cnn", "auto"),
}
PHASES = ("network", "features", "posterior", "scoring", "choice")


def make_pool(path: Path, n: int, width: int) -> None:
    """Write n vectors around the centres of classes, class i % CLASSES for point i."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, width)).astype(np.float32)
    points = np.lib.format.open_memmap(path, "w+", np.float32, (n, width))
    noise = 2 * rng.standard_normal((10_000, width), np.float32)
    for i, start in enumerate(range(0, n, 10_000)):
        rows = np.arange(start, min(start + 10_000, n))
        points[rows] = centres[rows % CLASSES] + np.roll(noise[: len(rows)], i, axis=1)
    points.flush()


def measure(path: Path, contender: str) -> dict[str, Any]:
    """Seconds by phase of a round, and the peak of memory in MB."""
    torch.set_num_threads(1)
    points = np.load(path, mmap_mode="r")
    method, acquisition = CONTENDERS[contender]
    began, cpu = time.perf_counter(), time.process_time()
    learner = ActiveLearner(Pool(points, CLASSES), "dense", method, acquisition, seed=0)
    first = np.sort(np.random.default_rng(1).choice(len(points), LABELS, replace=False))
    learner.tell(first, first % CLASSES)
    learner.fit()
    learner.ask(BATCH)
    return {
        "contender": contender,
        "points": len(points),
        "width": points.shape[1],
        "seconds": {phase: round(learner.seconds.get(phase, 0.0), 2) for phase in PHASES},
        "all_seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mb": round(peak_memory()),
    }


def as_table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table; memory also as what it is above that of the smallest pool."""
    lines = [
        f"| method | points | width | {' | '.join(PHASES)} | CPU in all | peak MB | above |",
        "|---" * (len(PHASES) + 6) + "|",
    ]
    least: dict[tuple[str, int], int] = {}
    for row in rows:
        key = row["contender"], row["width"]
        least.setdefault(key, row["peak_mb"])
        phases = " | ".join(f"{row['seconds'][phase]:g}" for phase in PHASES)
        lines.append(
            f"| {row['contender']} | {row['points']:,} | {row['width']} | {phases} "
            f"| {row['cpu_seconds']:g} | {row['peak_mb']} | {row['peak_mb'] - least[key]} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print or save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--folder", type=Path, default=Path("."), help="for the files of vectors")
    parser.add_argument("--save", type=Path, help="stem of the .json and .md to write")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    spawn = multiprocessing.get_context("spawn")
    for n in args.sizes:
        path = args.folder / f"pool-{n}-{args.width}.npy"
        make_pool(path, n, args.width)
        for contender in args.contenders:
            with spawn.Pool(1) as process:  # its own memory, and no more
                rows.append(process.apply(measure, (path, contender)))
            print(json.dumps(rows[-1]), flush=True)
        path.unlink()
    rows.sort(key=lambda row: (row["contender"], row["points"]))
    table = as_table(rows)
    print(table)
    if args.save is not None:
        args.save.parent.mkdir(parents=True, exist_ok=True)
        where = {"commit": commit("spinal", "benchmarks"), "processor": processor()}
        content = json.dumps({**where, "rows": rows}, indent=2)
        args.save.with_suffix(".json").write_text(content + "\n")
        args.save.with_suffix(".md").write_text(
            f"# A round at several sizes of the pool\n\n`python {' '.join(sys.argv)}`, commit "
            f"{where['commit']}, {where['processor']}, one thread. {LABELS} labels, {BATCH} asked, "
            f"{CLASSES} classes. Phases are wall-clock seconds.\n\n{table}\n"
        )


if __name__ == "__main__":
    main()
