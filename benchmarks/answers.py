"""Accuracy per answer: simulated people answer the questions of strategies, on frozen features.

The datasets are those of ``benchmarks.anywhere`` with features. A contender asks in batches, is
trained on all answers so far, and is tested after each batch. Contenders are spinal as in
``spinal label``, with and without its parts, and logistic regression with strategies of
`spinal.acquisition` or of other packages (``benchmarks.peers.answers_peers``). A result is a line
of ``results.jsonl``; existing results are not computed again.

    python -m benchmarks.answers --half develop --cache DIR --out results/answers
    python -m benchmarks.answers --out results/answers --report
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.answers_report import write_report
from benchmarks.anywhere.cells import encode_table
from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import Points, read_suite
from benchmarks.anywhere.vectors import span, unit_length
from benchmarks.machine import commit
from benchmarks.peers.answers_peers import PEERS
from benchmarks.results import Results
from spinal import ActiveLearner, Pool
from spinal.acquisition import Candidates, make_acquisition
from spinal.label.learning.rounds import DENSE, INPUT_DROPOUT
from spinal.networks import build_network

#: Points of the pool, drawn for each seed.
POOL = 5_000
#: Answers after which the model is tested. Beyond the first 300, random answers alone: how many of
#: them would do what fewer chosen ones do.
ANSWERS = (10, 20, 30, 40, 50, 60, 80, 100, 130, 160, 200, 250, 300)
MORE_ANSWERS = (*ANSWERS, *range(350, 601, 50), *range(700, 1501, 100))
#: At most this share of a pool is asked.
ASKED = 0.6
#: spinal: how it chooses, and what it learns from.
SPINAL = {
    "spinal": ("auto", "pool"),
    "spinal, labels alone": ("auto", "labels"),
    "spinal, random": ("random", "pool"),
    "spinal, random, labels alone": ("random", "labels"),
}
#: Strategies for logistic regression, and how their first batch is chosen.
STRATEGIES = {
    "random": "random", "margin": "random", "badge": "random", "typiclust": "typiclust",
    "max-herding": "max-herding", "uncertainty-herding": "max-herding", "bait": "max-herding",
    "drop-query": "max-herding", "auto": "max-herding",
}  # fmt: skip
#: Samples, and the share of features that each one drops, for DropQuery.
SAMPLES, DROPPED = 20, 0.75
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # C of logistic regression
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Task:
    """A pool with hidden classes, and test points.

    Attributes:
        raw: features of the pool as they come, ``[N, D]``.
        raw_test: those of the test points.
        x_pool: features of the pool for logistic regression: those of tables in units of their
            standard deviations, all others centred and scaled to length 1.
        answers: what the person says when asked, ``[N]``.
        x_test: features of the test points for logistic regression.
        y_test: their classes.
        n_classes: C.
    """

    raw: NDArray[np.float32]
    raw_test: NDArray[np.float32]
    x_pool: NDArray[np.float32]
    answers: NDArray[np.int64]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    n_classes: int


def make_task(points: Points, kind: str, wrong: float, seed: int) -> Task:
    """Draw a pool, and a person who gives another class than the right one to a share of it."""
    random = np.random.default_rng(seed)
    pool = random.permutation(len(points.y_train))[:POOL]
    x_pool, x_test = points.x_train[pool], points.x_test
    if points.categorical is not None:
        x_pool, x_test = encode_table(x_pool, x_test, points.categorical)
    raw, raw_test = x_pool, x_test
    if kind == "table":
        spread = np.where(x_pool.std(0) > 0, x_pool.std(0), 1)
        x_pool, x_test = ((x - x_pool.mean(0)) / spread for x in (x_pool, x_test))
        common = np.sqrt(np.square(x_pool).sum(1).mean())
        x_pool, x_test = x_pool / common, x_test / common
    else:
        x_pool, x_test = (unit_length(x - x_pool.mean(0)) for x in (x_pool, x_test))
    answers, n_classes = points.y_train[pool].copy(), len(points.classes)
    mistaken = random.random(len(pool)) < wrong
    answers[mistaken] += random.integers(1, n_classes, mistaken.sum())
    return Task(
        raw.astype(np.float32), raw_test.astype(np.float32), x_pool.astype(np.float32),
        answers % n_classes, x_test.astype(np.float32), points.y_test, n_classes,
    )  # fmt: skip


class Logistic:
    """Logistic regression; C by the likelihood of out-of-fold answers.

    C is chosen anew when there are half as many answers again as at the last choice.
    """

    def __init__(self, n_classes: int, seed: int) -> None:
        self.n_classes, self.strength = n_classes, 1.0
        self._seed, self._chosen_at = seed, 0

    def fit(self, x: NDArray, y: NDArray[np.int64]) -> None:
        """Learn from the answers y to x."""
        self._basis = span(x)
        x = x @ self._basis
        if len(y) >= 1.5 * self._chosen_at:
            likelihoods = [self._out_of_fold(x, y, strength) for strength in STRENGTHS]
            self.strength = STRENGTHS[int(np.argmax(likelihoods))]
            self._chosen_at = len(y)
        self._counts = np.bincount(y, minlength=self.n_classes)
        self._model = _fit(x, y, self.strength)

    def predict(self, x: NDArray) -> NDArray:
        """Class probabilities ``[N, C]``; a class without answers has 1 / (n + C)."""
        prior = (self._counts + 1) / (self._counts.sum() + self.n_classes)
        present = self._counts > 0
        probs = np.tile(prior, (len(x), 1))
        if self._model is not None:
            probs[:, present] = self._model.predict_proba(x @ self._basis) * prior[present].sum()
        return probs

    def _out_of_fold(self, x: NDArray, y: NDArray[np.int64], strength: float) -> float:
        fold = np.random.default_rng(self._seed).permutation(len(y)) % FOLDS
        total = 0.0
        for held in (fold == i for i in range(FOLDS)):
            other = Logistic(self.n_classes, self._seed)
            other._basis = np.eye(x.shape[1], dtype=x.dtype)
            other._counts = np.bincount(y[~held], minlength=self.n_classes)
            other._model = _fit(x[~held], y[~held], strength)
            probs = other.predict(x[held])
            total += np.log(np.maximum(probs[np.arange(held.sum()), y[held]], 1e-6)).sum()
        return total


def simulate(task: Task, contender: str, seed: int) -> Iterator[dict[str, Any]]:
    """Ask, learn, test, until enough is asked: one result after each batch."""
    run = _spinal if contender in SPINAL else _logistic
    start = time.process_time()
    for n, probs in run(task, contender, seed):
        values = measure(probs, task.y_test, np.ones(len(task.y_test)))
        seconds = round(time.process_time() - start, 2)
        yield {"answers": n, "seconds": seconds} | {k: round(v, 5) for k, v in values.items()}
        start = time.process_time()


def _spinal(task: Task, contender: str, seed: int) -> Iterator[tuple[int, NDArray]]:
    """The learner of ``spinal label`` on features: numbers of answers, test probabilities."""
    acquisition, learn_from = SPINAL[contender]
    pool = Pool(task.raw, [str(c) for c in range(task.n_classes)])
    network = build_network(
        "dense", task.raw.shape[1:], task.n_classes, input_dropout=INPUT_DROPOUT, seed=seed
    )
    learner = ActiveLearner(
        pool, network, "spn-cnn", acquisition, seed, training=DENSE, learn_from=learn_from
    )
    told = 0
    for n in ANSWERS:
        if n > ASKED * len(pool):
            return
        asked = learner.ask(n - told)
        learner.tell(asked, task.answers[asked])
        told = n
        learner.fit()
        yield n, learner.predict_proba(task.raw_test)


def _logistic(task: Task, strategy: str, seed: int) -> Iterator[tuple[int, NDArray]]:
    """Logistic regression with a strategy: numbers of answers, test probabilities."""
    model = Logistic(task.n_classes, seed)
    asked = np.empty(0, np.int64)
    for n in MORE_ANSWERS if strategy == "random" else ANSWERS:
        if n > ASKED * len(task.x_pool):
            return
        asked = np.append(asked, ask(task, model, strategy, asked, n - len(asked), seed))
        model.fit(task.x_pool[asked], task.answers[asked])
        yield n, model.predict(task.x_test)


def ask(
    task: Task, model: Logistic, strategy: str, asked: NDArray[np.int64], b: int, seed: int
) -> NDArray[np.int64]:
    """The next b points by a strategy of `spinal.acquisition` or of another package."""
    if strategy in PEERS:
        first, query = PEERS[strategy]
        if len(asked) or first == "itself":
            answers = np.full(len(task.x_pool), np.nan)
            answers[asked] = task.answers[asked]
            return query(task.x_pool, answers, model, b, seed)
        strategy = first
    elif not len(asked):
        strategy = STRATEGIES[strategy]
    acquisition = make_acquisition(strategy)
    left = np.setdiff1d(np.arange(len(task.x_pool)), asked)

    def log_probs(rows: NDArray[np.int64]) -> torch.Tensor:
        masks = [1.0]
        if acquisition.compares_samples:
            random = np.random.default_rng((seed, len(asked)))
            masks = list(random.random((SAMPLES, task.x_pool.shape[1])) >= DROPPED)
        probs = np.stack([model.predict(task.x_pool[rows] * mask) for mask in masks], 1)
        return torch.from_numpy(probs).log()

    arrays = {
        "features": lambda: torch.from_numpy(task.x_pool[left]),
        "labelled_features": lambda: torch.from_numpy(task.x_pool[asked]),
        "log_probs": lambda: log_probs(left),
        "labelled_log_probs": lambda: log_probs(asked),
    }
    given = {name: make() for name, make in arrays.items() if name in acquisition.needs}
    candidates = Candidates(**given, ids=torch.from_numpy(left))
    generator = torch.Generator().manual_seed(1000 * seed + len(asked))
    return left[acquisition.select(candidates, b, generator).numpy()]


def _fit(x: NDArray, y: NDArray[np.int64], strength: float) -> LogisticRegression | None:
    if len(np.unique(y)) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that stop early; cross-validation sorts them out
        return LogisticRegression(C=strength, max_iter=200).fit(x, y)


def main() -> None:
    """Compute what is missing, or write the report."""
    options = _parse()
    if options.report:
        write_report(options.out)
        return
    results = Results(options.out / "results.jsonl", ("set", "contender", "wrong", "seed"))
    measured = {"commit": commit("spinal", "benchmarks/answers.py")}
    with threadpool_limits(1):
        for entry in read_suite(options.half, options.only, KINDS):
            for seed, wrong, contender in product(options.seeds, options.wrong, options.contenders):
                name = {"set": entry.full, "contender": contender, "wrong": wrong, "seed": seed}
                if name in results:
                    continue
                points = load_points(entry, options.cache, options.text_encoder)
                task = make_task(points, KINDS[entry.features], wrong, seed)
                said = list(simulate(task, contender, seed))
                results.add(name | {"half": entry.half} | line | measured for line in said)
                print(name, said[-1], flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an answer is worth.")
    parser.add_argument("--half", choices=["develop", "report"], default="develop")
    parser.add_argument("--only", nargs="+", help="names of sets")
    contenders = [*SPINAL, *STRATEGIES, *PEERS]
    parser.add_argument(
        "--contenders", nargs="+", default=[*SPINAL, *STRATEGIES], choices=contenders
    )
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--cache", type=Path, help="where features are kept")
    parser.add_argument("--text-encoder", type=Path, help="see benchmarks.anywhere.features")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--report", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
