"""The same work in several libraries: lines of code, accuracy, seconds, memory.

``python benchmarks/side_by_side.py --save results/peers.md`` runs the loops in
``benchmarks/peers/loops``, one process for each library and seed. A library that cannot be imported
is left out, and the output says so; see ``benchmarks/README.md`` for how to install them.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from spinal import load_dataset
from spinal.runs.origin import commit, processor

LOOPS = Path(__file__).parent / "peers" / "loops"
#: Libraries by the name of their file in `LOOPS`, and the module that has to be there.
LIBRARIES = {
    "spinal": "spinal",
    "scikit_activeml": "skactiveml",
    "modal": "modAL",
    "small_text": "small_text",
    "baal": "baal",
}
TITLES = {"scikit_activeml": "scikit-activeml", "modal": "modAL", "small_text": "small-text"}
MARKS = (100, 300)
WORK = (
    "The work: 1,297 digits of 8 x 8 pixels, 20 first labels at random, then ten a round, to 300. "
    "scikit-activeml, modAL and small-text choose by margin, with logistic regression; baal by "
    "BALD, with dropout in a network of one hidden layer; spinal by its defaults. Nothing is tuned "
    "in any of them. Accuracy is on 500 other digits."
)


def lines_of(library: str) -> int:
    """Lines of code of the function ``run`` and of what it needs, without blanks and docstrings."""
    tree = ast.parse((LOOPS / f"loop_{library}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return sum(bool(line.strip()) for line in ast.unparse(tree).splitlines())


def measure(library: str, seed: int, data: Path) -> dict[str, float] | str:
    """Run a loop in a process of its own; the last line of its error if it fails."""
    command = [sys.executable, str(LOOPS / "worker.py"), library, str(data), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout.splitlines()[-1])


def table(results: pd.DataFrame) -> str:
    """Means over seeds, as a table in Markdown."""
    lines = ["| | lines of code | % at 100 labels | % at 300 labels | seconds | MB |",
             "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for library, rows in results.groupby("library", sort=False):
        mean, spread = rows.mean(numeric_only=True), rows.std(numeric_only=True)
        cells = [f"{100 * mean[str(n)]:.1f}" for n in MARKS]
        if len(rows) > 1:
            cells = [f"{c} ± {100 * spread[str(n)]:.1f}" for c, n in zip(cells, MARKS, strict=True)]
        cells += [f"{mean['seconds']:.0f}", f"{mean['megabytes']:.0f}"]
        name = TITLES.get(str(library), str(library))
        lines.append(f"| {name} | {lines_of(str(library))} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--save", type=Path, help="page to write; printed without")
    options = parser.parse_args()
    digits = load_dataset("digits")
    arrays = {
        f"{part}_x": getattr(digits, f"{part}_images").reshape(-1, 64).astype(np.float32) / 255
        for part in ("train", "test")
    } | {"train_y": digits.train_labels, "test_y": digits.test_labels}
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "digits.npz"
        np.savez(data, **arrays)
        for library, module in LIBRARIES.items():
            if importlib.util.find_spec(module) is None:
                notes.append(f"{library} is not installed here: left out.")
                continue
            for seed in range(options.seeds):
                measured = measure(library, seed, data)
                if isinstance(measured, str):
                    notes.append(f"{library} does not run with the other packages: {measured}")
                    break
                rows.append({"library": library, **measured})
    here = commit()
    changed = " with uncommitted changes" if here.get("changed") else ""
    page = (
        "# The same work in several libraries\n\n"
        f"`python benchmarks/side_by_side.py`, seeds 0 to {options.seeds - 1}, "
        f"commit {here.get('commit', 'unknown')[:7]}{changed}. {WORK}\n\n"
        f"{table(pd.DataFrame(rows))}\n"
        "Mean ± standard deviation over seeds; first labels are the same for all. Seconds are CPU "
        f"time of the whole loop, 29 fits, on one thread of {processor()}. MB are the growth of "
        "the peak resident set above what imports take. Lines are those of the file in "
        "`benchmarks/peers/loops`, without docstrings and blanks.\n"
    )
    page += "".join(f"\n{note}\n" for note in notes)
    if options.save is None:
        print(page)
    else:
        options.save.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
