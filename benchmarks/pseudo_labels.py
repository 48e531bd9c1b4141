"""Pseudo-labels of the pool for whole networks, compared with training on labels only.

A learner trains a network on random labels, with ``learn_from`` = labels and pool, and the network
is tested. A result is a line of ``networks.jsonl``; existing results are not computed again.

    python -m benchmarks.pseudo_labels --out results/answers
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import Points, read_raw, read_suite
from benchmarks.machine import commit
from benchmarks.results import Results
from spinal import ActiveLearner, Pool

POOL = 5000
LABELS = (50, 100, 300, 1000)
#: Of the named network; a VGG of the full width is too slow here.
WIDTHS = {"lenet": 1.0, "vgg": 0.125}


def results(
    points: Points, network: str, method: str, labels: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A result for each thing to learn from."""
    drawn = np.random.default_rng(seed).permutation(len(points.y_train))[:POOL]
    for learn_from in ("labels", "pool"):
        pool = Pool(points.x_train[drawn], points.classes)
        part = (network, {"width": WIDTHS[network]})
        learner = ActiveLearner(pool, part, method, seed=seed, learn_from=learn_from)
        learner.tell(np.arange(labels), points.y_train[drawn[:labels]])
        start = time.process_time()
        learner.fit()
        seconds = round(time.process_time() - start, 1)
        for by in ("network", "method"):
            probs = learner.predict_proba(points.x_test, by=by)
            values = measure(probs, points.y_test, np.ones(len(points.y_test)))
            yield {
                "by": by, "learn_from": learn_from, "learned_from": learner.learned_from,
                "seconds": seconds, **{k: round(values[k], 5) for k in ("accuracy", "nll", "ece")},
            }  # fmt: skip


def report(lines: list[dict[str, Any]]) -> Iterator[str]:
    """A table in Markdown."""
    table = pd.DataFrame(lines)
    yield "# What the pool teaches whole networks"
    yield ""
    yield f"`python -m benchmarks.pseudo_labels`, commit {', '.join(sorted(set(table.commit)))};"
    yield f"random labels, a pool of at most {POOL:,} points, mean over seeds. From labels alone ->"
    yield "from the pool, as far as held-out labels allow; and how often they did."
    yield "The sets of the half to develop: the recipe was tried on them before."
    yield ""
    yield "| set | by | labels | seeds | accuracy (%) | NLL | ECE | allowed | time |"
    yield "|---|---|--:|--:|---|---|---|--:|--:|"
    for key, part in table.groupby(["set", "by", "labels"], sort=False):
        name, by, labels = key  # type: ignore[misc]
        values = part.groupby("learn_from")[["accuracy", "nll", "ece", "seconds"]].mean()
        before, after = values.loc["labels"], values.loc["pool"]
        taught = part[part.learn_from == "pool"]
        yield (
            f"| {name} | {by} | {labels} | {len(taught)} "
            f"| {100 * before.accuracy:.1f} -> {100 * after.accuracy:.1f} "
            f"| {before.nll:.3f} -> {after.nll:.3f} | {before.ece:.3f} -> {after.ece:.3f} "
            f"| {(taught.learned_from == 'pool').sum()} of {len(taught)} "
            f"| {after.seconds / before.seconds:.1f} x |"
        )


def main() -> None:
    """Compute what is missing, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pseudo_labels")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--half", choices=["develop", "report"], default="develop")
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--labels", nargs="+", type=int, default=list(LABELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--method", default="spn-cnn")
    options = parser.parse_args()
    found = Results(options.out / "networks.jsonl", ("set", "method", "labels", "seed"))
    measured = {"commit": commit("spinal", "benchmarks/pseudo_labels.py")}
    with threadpool_limits(1):
        for seed, entry in product(
            options.seeds, list(read_suite(options.half, options.only, WIDTHS))
        ):
            points = read_raw(entry)
            for labels in options.labels:
                name = {
                    "set": entry.full, "method": options.method, "labels": labels, "seed": seed
                }  # fmt: skip
                if name in found or 2 * labels > len(points.y_train):
                    continue
                lines = list(results(points, entry.features, options.method, labels, seed))
                found.add(name | line | measured for line in lines)
                print(name, lines[-1], flush=True)
    (options.out / "networks.md").write_text("\n".join(report(found.lines)) + "\n")


if __name__ == "__main__":
    main()
