"""The same work in several libraries: lines of code, accuracy, seconds, memory.

``python benchmarks/side_by_side.py --save results/peers.md`` runs the loops in
``benchmarks/peers/loops``, one process for each library and seed. ``--python modal=PYTHON`` runs a
library in another environment, if it needs other versions of its dependencies. A library that is
not installed is left out, and the page says so; ``benchmarks/README.md`` explains how to install
them.
"""

from __future__ import annotations

import argparse
import ast
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
#: Libraries, by the name of their file in `LOOPS`.
LIBRARIES = ("spinal", "scikit_activeml", "modal", "small_text", "baal")
#: Names of their distributions, where these differ.
DISTRIBUTIONS = {
    "scikit_activeml": "scikit-activeml", "modal": "modAL-python", "small_text": "small-text",
}  # fmt: skip
TITLES = {"scikit_activeml": "scikit-activeml", "modal": "modAL", "small_text": "small-text"}
MARKS = (100, 300)
WORK = (
    "The task: 1,297 digits of 8 x 8 pixels, 20 random initial labels, then ten labels per round, "
    "up to 300. scikit-activeml, modAL and small-text use margin sampling with logistic "
    "regression; baal uses BALD with dropout in a network with one hidden layer; spinal uses its "
    "defaults. Nothing is tuned. The accuracy is measured on 500 other digits."
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


def version_of(library: str, python: str) -> str | None:
    """The installed version of a library; None if it is not installed."""
    name = DISTRIBUTIONS.get(library, library)
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()


def measure(library: str, seed: int, data: Path, python: str) -> dict[str, float] | str:
    """Run a loop in a separate process; returns the last line of the error if it fails."""
    command = [python, str(LOOPS / "worker.py"), library, str(data), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit code {done.returncode}"
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
        name = f"{TITLES.get(str(library), library)} {rows['version'].iloc[0]}"
        lines.append(f"| {name} | {lines_of(str(library))} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--save", type=Path, help="page to write; printed without")
    parser.add_argument(
        "--python", action="append", default=[], metavar="LIBRARY=PYTHON",
        help="the Python that runs a library; may be repeated",
    )  # fmt: skip
    options = parser.parse_args()
    pythons = dict(choice.split("=", 1) for choice in options.python)
    digits = load_dataset("digits")
    arrays = {
        f"{part}_x": getattr(digits, f"{part}_images").reshape(-1, 64).astype(np.float32) / 255
        for part in ("train", "test")
    } | {"train_y": digits.train_labels, "test_y": digits.test_labels}
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "digits.npz"
        np.savez(data, **arrays)
        for library in LIBRARIES:
            python = pythons.get(library, sys.executable)
            version = version_of(library, python)
            if version is None:
                notes.append(f"{library} is not installed here and was left out.")
                continue
            for seed in range(options.seeds):
                measured = measure(library, seed, data, python)
                if isinstance(measured, str):
                    notes.append(f"{library} {version} failed: {measured}")
                    break
                rows.append({"library": library, "version": version, **measured})
    here = commit()
    changed = " with uncommitted changes" if here.get("changed") else ""
    page = (
        "# The same task in several libraries\n\n"
        f"`python benchmarks/side_by_side.py`, seeds 0 to {options.seeds - 1}, "
        f"commit {here.get('commit', 'unknown')[:7]}{changed}. {WORK}\n\n"
        f"{table(pd.DataFrame(rows))}\n"
        "Mean ± standard deviation over seeds. The initial labels are the same for all libraries. "
        f"Seconds are CPU time of the complete loop, 29 fits, on one thread of {processor()}. MB "
        "are the growth of the peak resident set after the imports. Lines of code are counted in "
        "`benchmarks/peers/loops`, without docstrings and blank lines.\n"
    )
    page += "".join(f"\n{note}\n" for note in notes)
    if options.save is None:
        print(page)
    else:
        options.save.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
