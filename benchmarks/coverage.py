"""Coverage and width of the accuracy interval in `spinal label`.

Simulated sessions on features of ``benchmarks.anywhere``: a pool of at most 2,000 points, of which
15 % are reserved for the audit; a quarter of the answers about random points, the others about
points with the smallest margin, in three batches; and the answers of the audit in between, which
are also used for training. The truth is the accuracy of the last model on all points outside the
pool. The model is logistic regression on the first 100 principal components, with fixed penalty.

It is compared with the previous interval: 15 % of the answers are held out of training, and the
interval is Wilson's for the share of them that is predicted right.

    python -m benchmarks.coverage --cache DIR --out results/coverage.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from torch import Tensor

from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.sets import SuiteEntry, read_suite
from benchmarks.machine import commit
from spinal.classifiers import Coordinates, Units, logistic_path
from spinal.label.learning.audit import audit_folds, estimate_accuracy
from spinal.label.store.questions import LEAST, TURN
from spinal.label.store.store import RESERVE

SETS = (
    "cifar-10--efficientnet-lite0", "solar-cells--efficientnet-lite0", "newsgroups--sentences",
    "sylva--table", "rotten-tomatoes--sentences",
)  # fmt: skip
POOL, COMPONENTS, PENALTY = 2_000, 100, 0.1
BATCHES = 4
AUDIT, OLD = 0.05, 0.15

Rows = NDArray[np.int64]
Predict = Callable[[Rows], Tensor]


class World:
    """All points of a set: coordinates ``z [N, D]`` and classes ``y [N]``."""

    def __init__(self, entry: SuiteEntry, cache: Path) -> None:
        points = load_points(entry, cache)
        x = torch.from_numpy(np.concatenate([points.x_train, points.x_test])).float()
        units = Units.fit(x, "each" if KINDS[entry.features] == "table" else "common")
        self.z = Coordinates.fit(x, units, COMPONENTS)(x)
        self.y = torch.from_numpy(np.concatenate([points.y_train, points.y_test]))
        self.n_classes = len(points.classes)

    def fit(self, rows: Rows) -> Predict:
        """Learn from these points; the result gives class probabilities of others."""
        ((weight, bias),) = logistic_path(self.z[rows], self.y[rows], self.n_classes, [PENALTY])
        unseen = torch.bincount(self.y[rows], minlength=self.n_classes) == 0
        bias = bias.masked_fill(unseen, -torch.inf)
        return lambda others: (self.z[others] @ weight + bias).softmax(1)

    def judge(self, predict: Predict, rows: Rows) -> tuple[NDArray[np.bool_], NDArray]:
        """Whether predictions are right, and the highest class probabilities."""
        confidence, classes = predict(rows).max(1)
        return (classes == self.y[rows]).numpy(), confidence.numpy()


def simulate(world: World, answers: int, audited: int, learn: bool, seed: list[int]) -> list[float]:
    """A labelling session.

    Args:
        world: the points.
        answers: number of all answers.
        audited: of these, the number about points drawn by chance.
        learn: whether the answers of the audit are learnt from, or else only tested on.
        seed: of all randomness.

    Returns:
        The estimate of the accuracy, the limits of its interval, and the truth.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(world.y))
    pool, outside = np.split(order, [min(POOL, int(0.6 * len(order)))])
    reserve, others = np.split(pool, [int(RESERVE * len(pool))])
    audit, rest = np.split(reserve, [audited])
    chosen, learnt = others[:0], audit[:0]
    for batch in np.array_split(np.arange(answers - audited), BATCHES):
        left = np.setdiff1d(others, chosen)
        if len(chosen):
            top = world.fit(np.concatenate([chosen, learnt]))(left).topk(2, 1).values
            best = (top[:, 0] - top[:, 1]).numpy().argsort()[: len(batch)]
        else:
            best = random.permutation(len(left))[: len(batch)]
        chosen = np.concatenate([chosen, left[best]])
        if learn:
            learnt = audit[: audited * len(chosen) // (answers - audited)]
    model = world.fit(np.concatenate([chosen, learnt]))
    truth = world.judge(model, outside)[0].mean()
    if not learn:
        right = int(world.judge(model, audit)[0].sum())
        wilson = binomtest(right, audited).proportion_ci(method="wilson")
        return [right / audited, wilson.low, wilson.high, truth]
    right, confidence = np.zeros(audited, bool), np.zeros(audited)
    folds = audit_folds(audited, answers)
    for fold in np.unique(folds):
        without = world.fit(np.concatenate([chosen, audit[folds != fold]]))
        right[folds == fold], confidence[folds == fold] = world.judge(without, audit[folds == fold])
    found = estimate_accuracy(right, confidence, world.judge(model, rest)[1])
    return [found.value, found.low, found.high, truth]


def table(options: argparse.Namespace) -> Iterator[str]:
    """Lines of the table, one for each set and number of answers."""
    columns = "answers | audit | accuracy | holds | width | error | old: tested | accuracy | holds"
    yield f"| set | {columns} | width | error |"
    yield "|---" * 12 + "|"
    entries = {entry.full: entry for entry in read_suite()}
    for name in options.sets:
        world = World(entries[name], options.cache)
        for answers in options.answers:
            line = [name, str(answers)]
            least = min(LEAST, answers // TURN)
            for audited, learn in (
                (max(int(AUDIT * answers), least), True), (int(OLD * answers), False)
            ):  # fmt: skip
                seeds = ([options.seed, answers, learn, i] for i in range(options.sessions))
                results = [simulate(world, answers, audited, learn, seed) for seed in seeds]
                value, low, high, truth = np.array(results).T
                holds = 100 * np.mean((low <= truth) & (truth <= high))
                error = np.sqrt(np.mean((value - truth) ** 2))
                line += [str(audited), f"{100 * truth.mean():.1f}", f"{holds:.1f}"]
                line += [f"{100 * np.mean(high - low):.1f}", f"{100 * error:.1f}"]
            yield f"| {' | '.join(line)} |"


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--answers", nargs="+", type=int, default=[50, 100, 300])
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, required=True, help="where features are kept")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [f"`python -m benchmarks.coverage`, seed {options.seed}, commit {commit('spinal')}", ""]
    for line in table(options):
        print(line, file=sys.stderr, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
