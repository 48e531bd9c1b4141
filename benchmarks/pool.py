"""Whether the pool helps: training on labels only, always on the pool, or as the gate decides.

A fourth option is training on the pool by EM, without a graph: the targets of a point are the
responsibilities of the circuit, and every point has the same weight.

The datasets and the simulated people are those of ``benchmarks.answers``. The labelled points are
drawn at random, or chosen by ``auto`` for a logistic regression. A result is a line of
``pool.jsonl``; existing results are not computed again.

    python -m benchmarks.pool --half develop --cache DIR --out results/answers --wrong 0 0.05
    python -m benchmarks.pool --out results/answers --report
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.answers import POOL, Logistic, Task, ask, make_task
from benchmarks.anywhere.cells import encode_table
from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import Points, read_suite
from benchmarks.machine import commit, peak_memory
from benchmarks.results import Results
from spinal.classifiers import blend, label_frequencies
from spinal.classifiers.graph import GraphCache
from spinal.classifiers.mixing import held_out_gain
from spinal.classifiers.pool import PoolPoints, pool_targets

ANSWERS = (30, 50, 100, 300)
#: At most this share of a pool is asked.
ASKED = 0.75
BATCHES = (*[10] * 10, *[20] * 10)
METRICS = ("accuracy", "nll", "ece")
#: Points that units are taken from, as in a learner.
REFERENCE = 2000


def answered(task: Task, strategy: str, seed: int) -> NDArray[np.int64]:
    """Points of the pool in the order in which they are asked."""
    n = min(ANSWERS[-1], int(ASKED * len(task.x_pool)))
    if strategy == "random":
        return np.random.default_rng(seed).permutation(len(task.x_pool))[:n]
    model, asked = Logistic(task.n_classes, seed), np.empty(0, np.int64)
    for batch in BATCHES:
        b = min(batch, n - len(asked))
        if b:
            name = strategy if len(asked) else "max-herding"
            asked = np.append(asked, ask(task, model, name, asked, b, seed))
            model.fit(task.x_pool[asked], task.answers[asked])
    return asked


def vectors(points: Points, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of the pool, in the order of `make_task`, and of the test, as a learner gets them."""
    pool = np.random.default_rng(seed).permutation(len(points.y_train))[:POOL]
    x_pool, x_test = points.x_train[pool], points.x_test
    if points.categorical is not None:
        x_pool, x_test = encode_table(x_pool, x_test, points.categorical)
    return torch.from_numpy(x_pool).float(), torch.from_numpy(x_test).float()


def responsibilities(
    log_probs: torch.Tensor, spread: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Targets and weights of EM, in the place of `pool_targets`: what the circuit believes."""
    probs = log_probs.double().exp()
    return probs, torch.full((len(probs),), 0.3, dtype=torch.float64)


def results(
    suite_points: Points, kind: str, strategy: str, wrong: float, seed: int
) -> Iterator[dict[str, Any]]:
    """One result for each number of answers: how good each way is, and what the gate decides."""
    task = make_task(suite_points, kind, wrong, seed)
    asked = answered(task, strategy, seed)
    x, x_test = vectors(suite_points, seed)
    smoothing = GraphCache().smoothing(x)
    reference = x[:REFERENCE]  # the order is random

    for n in ANSWERS:
        if n > len(asked):
            return
        rows, y = torch.from_numpy(asked[:n]), torch.from_numpy(task.answers[asked[:n]])
        gains: list[float] = []

        def always(*predictions: torch.Tensor, gains: list[float] = gains) -> float:
            gains.append(held_out_gain(*predictions))
            return math.inf

        values, seconds = {}, {}
        points = PoolPoints(x, rows, smoothing)
        for name, pool, targets in (
            ("labels", None, pool_targets),
            ("pool", points, pool_targets),
            ("em", points, responsibilities),
        ):
            start = time.process_time()
            with (
                patch.object(blend, "held_out_gain", always),
                patch("spinal.classifiers.pool.pool_targets", targets),
            ):
                model = blend.fit_on_vectors(x[rows], y, task.n_classes, reference, pool)
            seconds[name] = round(time.process_time() - start, 2)
            counts = torch.bincount(y, minlength=task.n_classes)
            probs = model.with_prior(label_frequencies(counts)).log_probs(x_test).exp().numpy()
            measured = measure(probs, task.y_test, np.ones(len(task.y_test)))
            values[name] = {metric: round(measured[metric], 5) for metric in METRICS}
        values["gated"] = values["pool" if gains[0] > 0 else "labels"]
        yield {
            "answers": n, **values, "gain_nats": round(gains[0], 3), "seconds": seconds,
            "peak_mb": round(peak_memory()),
        }  # fmt: skip


def report(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Tables in Markdown: a row for each set, kind of answers and number of answers."""
    table = pd.json_normalize(lines)
    names = ("labels", "pool", "gated", "em")
    columns = [f"{name}.{metric}" for metric in METRICS for name in names]
    means = table.groupby(["set", "strategy", "wrong", "answers"])[columns].mean()
    yield "# What the pool teaches"
    yield ""
    yield "`python -m benchmarks.pool`, sets of the half `develop`. Gains over learning from labels"
    yield "only: always from the pool, from the pool if the gate allows it (the default), and"
    yield "always from the pool by EM."
    yield ""
    yield from _gains(means, names[1:])
    yield ""
    yield f"Seeds: {sorted(set(table.seed.tolist()))}. Commits: {sorted(set(table.commit))}."
    yield ""
    yield "Accuracy in %, NLL in nats and ECE: labels only / pool / gate / EM."
    yield ""
    yield "| set | chosen by | wrong answers | answers | accuracy | NLL | ECE |"
    yield "|---|---|--:|--:|---|---|---|"
    for (dataset, strategy, wrong, n), row in means.iterrows():  # type: ignore[misc]
        accuracy = " / ".join(f"{100 * row[f'{name}.accuracy']:.1f}" for name in names)
        nll, ece = (
            " / ".join(f"{row[f'{name}.{metric}']:.3f}" for name in names) for metric in METRICS[1:]
        )
        start = f"| {dataset} | {strategy} | {100 * wrong:.0f} % | {n} "
        yield f"{start}| {accuracy} | {nll} | {ece} |"


def _gains(means: pd.DataFrame, names: tuple[str, ...]) -> Iterator[str]:
    """A table of the gains over learning from labels only, over all cells."""
    columns = "chosen by | wrong answers | cells | mean gain | worst cell | cells below -0.5"
    yield f"| | {columns} | NLL | ECE |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for (strategy, wrong), cells in means.groupby(level=["strategy", "wrong"]):
        for name in names:
            gain = 100 * (cells[f"{name}.accuracy"] - cells["labels.accuracy"])
            nll, ece = (
                (cells[f"{name}.{metric}"] - cells[f"labels.{metric}"]).mean()
                for metric in METRICS[1:]
            )
            yield (
                f"| {name} | {strategy} | {100 * wrong:.0f} % | {len(gain)} | {gain.mean():+.2f} "
                f"| {gain.min():+.2f} | {int((gain < -0.5).sum())} | {nll:+.3f} | {ece:+.3f} |"
            )


def main() -> None:
    """Compute what is missing, or write the report."""
    options = _parse()
    found = Results(options.out / "pool.jsonl", ("set", "strategy", "wrong", "seed"))
    if options.report:
        (options.out / "pool.md").write_text("\n".join(report(found.lines)) + "\n")
        return
    measured = {"commit": commit("spinal/classifiers", "benchmarks/pool.py")}
    with threadpool_limits(1):
        for entry in read_suite(options.half, options.only, KINDS):
            points = load_points(entry, options.cache, options.text_encoder)
            cases = product(options.seeds, options.wrong, ("auto", "random"))
            for seed, wrong, strategy in cases:
                name = {"set": entry.full, "strategy": strategy, "wrong": wrong, "seed": seed}
                if name in found:
                    continue
                lines = results(points, KINDS[entry.features], strategy, wrong, seed)
                found.add(name | line | measured for line in lines)
                print(name, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whether the SPN learns from the pool.")
    parser.add_argument("--half", choices=["develop", "report"], default="develop")
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0])
    parser.add_argument("--cache", type=Path, help="where features are kept")
    parser.add_argument("--text-encoder", type=Path, help="see benchmarks.anywhere.features")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--report", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
