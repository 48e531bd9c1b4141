"""How much the accuracy changes with the seed of the learner, for the same labels.

python -m benchmarks.anywhere.stability --out results/anywhere/stability.md --cache DIR
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.anywhere.cells import cell_names, make_cell
from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.sets import read_suite
from benchmarks.machine import commit

LABELS, SEEDS = [100, 300], 5


def main() -> None:
    """Fit every set with features of the develop half with five seeds, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anywhere.stability")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="folder where features are kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "# The same labels, another seed\n",
        f"`python -m benchmarks.anywhere.stability`, commit "
        f"{commit('spinal', 'benchmarks/anywhere')}: SPN-CNN fitted to the same random labels "
        f"(seed 0) by learners with seeds 0 to {SEEDS - 1}; test accuracy in percent.\n",
        "| set | labels | lowest | highest | difference |",
        "|---|--:|--:|--:|--:|",
    ]
    with threadpool_limits(1):
        for entry in read_suite("develop", features=KINDS):
            points = load_points(entry, options.cache, None)
            for name in cell_names(entry, points, LABELS, [1], [0]):
                cell, truth = make_cell(entry, points, name)
                accuracies = []
                for seed in range(SEEDS):
                    learner = replace(cell, name=replace(name, seed=seed)).fit_learner("spn-cnn")
                    right = learner.predict(cell.x_test) == truth.labels
                    accuracies.append(100 * np.mean(right))
                low, high = min(accuracies), max(accuracies)
                lines.append(
                    f"| {name.set} | {name.labels} | {low:.2f} | {high:.2f} | {high - low:.2f} |"
                )
                print(lines[-1], flush=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
