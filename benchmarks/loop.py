"""Cost of a round of SPN-CNN, compared with Random, and as pool and labels grow.

Runs the protocol `mnist-300`, unchanged and with the whole pool as candidates, and single rounds at
other sizes. Each contender has its own learner. They take turns after each round, on one thread,
so that other load on the machine affects all equally.

    python benchmarks/loop.py --data-dir DIR --save results/benchmarks/loop
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from machine import peak_memory

from spinal.data import Dataset, Pool, Splits, load_dataset, make_splits
from spinal.experiments.protocol import Protocol, load_protocol
from spinal.learner import ActiveLearner
from spinal.methods import find_method

POOLS = (5_000, 10_000, 20_000, 40_000)
LABELS = (20, 100, 200, 300)
WHOLE_POOL = "spn-cnn, whole pool"
PHASES = ("network", "features", "posterior", "scoring", "choice", "evaluation")


def make_learner(
    protocol: Protocol, dataset: Dataset, splits: Splits, method: str, seed: int
) -> ActiveLearner:
    """A learner as `spinal run` would make it, with the initial labels."""
    pool = Pool(dataset.train_images, dataset.classes, members=splits.members)
    learner = ActiveLearner(
        pool, protocol.network.name, method, seed=seed, device="cpu",
        posterior=protocol.posterior_settings(find_method(method).posterior),
        training=protocol.training(),
        candidates=protocol.candidates,
    )  # fmt: skip
    learner.tell(splits.initial, dataset.train_labels[splits.initial])
    return learner


def make_round(learner: ActiveLearner, dataset: Dataset, batch: int) -> dict[str, float]:
    """Fit, predict the test set, ask and tell; seconds of each phase."""
    learner.fit()
    start = time.perf_counter()
    seen = learner.view(dataset.test_images)
    for by in ("method", "network"):
        learner.predict_log_proba(seen, by=by)
    evaluation = time.perf_counter() - start
    picks = learner.ask(batch)
    learner.tell(picks, dataset.train_labels[picks])
    return {**learner.seconds, "evaluation": evaluation}


def compare(
    protocol: Protocol, whole_pool: Protocol, dataset: Dataset, rounds: int
) -> pd.DataFrame:
    """Seconds by contender, round and phase."""
    contenders = {
        "random": ("random", protocol),
        "spn-cnn": ("spn-cnn", protocol),
        WHOLE_POOL: ("spn-cnn", whole_pool),
    }
    splits = _splits(protocol, dataset)
    learners = {
        name: make_learner(p, dataset, splits, method, 0)
        for name, (method, p) in contenders.items()
    }
    rows = []
    for number in range(rounds + 1):
        for name, learner in learners.items():
            labels = len(learner.pool.labelled_indices)
            seconds = make_round(learner, dataset, protocol.batch)
            rows.append({"contender": name, "round": number, "labels": labels, **seconds})
            print(f"{name}, {labels} labels: {sum(seconds.values()):.1f} s", flush=True)
    return pd.DataFrame(rows).fillna(0.0)


def scale(protocol: Protocol, dataset: Dataset) -> pd.DataFrame:
    """Seconds of single rounds of SPN-CNN, by pool size at 100 labels and by labels at 10K."""
    sizes = [(pool, 100) for pool in POOLS] + [(10_000, n) for n in LABELS if n != 100]
    rows: list[dict[str, Any]] = []
    for pool, labels in [sizes[0], *sizes]:  # the first once more: caches are cold
        resized = replace(protocol, pool=pool, initial=labels)
        learner = make_learner(resized, dataset, _splits(resized, dataset), "spn-cnn", 0)
        seconds = make_round(learner, dataset, protocol.batch)
        rows.append({"pool": pool, "labels": labels, **seconds})
        print(f"pool {pool:,}, {labels} labels: {sum(seconds.values()):.1f} s", flush=True)
    return pd.DataFrame(rows[1:])


def measure_peak(protocol: Protocol, data_dir: Path | None) -> float:
    """Peak resident memory in MB of a process that does a round of SPN-CNN, data included."""
    torch.set_num_threads(1)
    dataset = load_dataset("mnist", data_dir)
    learner = make_learner(protocol, dataset, _splits(protocol, dataset), "spn-cnn", 0)
    make_round(learner, dataset, protocol.batch)
    return peak_memory()


def _splits(protocol: Protocol, dataset: Dataset) -> Splits:
    return make_splits(
        len(dataset.train_labels), len(dataset.test_labels), pool=protocol.pool,
        validation=protocol.validation, initial=protocol.initial, test=None, seed=0,
    )  # fmt: skip


def sum_up(rounds: pd.DataFrame, sizes: pd.DataFrame, peak: float) -> dict[str, Any]:
    """The figures that it comes down to."""
    total = rounds.groupby("contender")[list(PHASES)].sum()
    total["all"] = total.sum(axis=1)
    by_pool = sizes[sizes["labels"] == 100]
    by_labels = sizes[sizes["pool"] == 10_000].sort_values("labels")
    per_point = np.polyfit(by_pool["pool"], by_pool[["features", "scoring"]].sum(axis=1), 1)[0]
    per_label = np.polyfit(by_labels["labels"], by_labels[["network", "posterior"]].sum(axis=1), 1)
    spn = total.loc[WHOLE_POOL]
    return {
        "seconds": total.round(2).to_dict("index"),
        "ratio_to_random": (total["all"] / total.loc["random", "all"]).round(3).to_dict(),
        "scoring_over_forward": round(spn["scoring"] / spn["features"], 4),
        "peak_memory_mb": round(peak),
        "ms_per_1000_pool_points": round(1e6 * per_point, 1),
        "ms_per_label": round(1e3 * per_label[0], 2),
    }


def plot(sizes: pd.DataFrame, path: Path) -> None:
    """Seconds of a round against the size of the pool and the number of labels."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    panels = (
        (axes[0], "pool", "points in the pool (100 labels)", sizes[sizes["labels"] == 100]),
        (axes[1], "labels", "labels (pool of 10,000)", sizes[sizes["pool"] == 10_000]),
    )
    for axis, key, title, rows in panels:
        rows = rows.sort_values(key)
        phases = [p for p in PHASES if p not in ("evaluation", "choice")]
        for phase in phases:
            axis.plot(rows[key], rows[phase], marker="o", label=phase)
            axis.annotate(
                phase, (rows[key].iloc[-1], rows[phase].iloc[-1]), (6, 0),
                textcoords="offset points", va="center", fontsize=8,
            )  # fmt: skip
        axis.set(xlabel=title, xlim=(0, 1.25 * rows[key].max()))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="seconds a round", ylim=(0, None))
    figure.savefig(path)


def main() -> None:
    """Measure, and print or save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rounds", type=int, default=28)
    parser.add_argument("--save", type=Path, help="stem of the .json, .csv and .svg to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    whole_pool = load_protocol("mnist-300@whole-pool")
    dataset = load_dataset("mnist", args.data_dir)
    sizes = scale(whole_pool, dataset)
    rounds = compare(load_protocol("mnist-300"), whole_pool, dataset, args.rounds)
    with multiprocessing.get_context("spawn").Pool(1) as process:  # its own memory, and no more
        peak = process.apply(measure_peak, (replace(whole_pool, initial=300), args.data_dir))
    figures = sum_up(rounds, sizes, peak)
    print(json.dumps(figures, indent=2))
    if args.save is not None:
        args.save.parent.mkdir(parents=True, exist_ok=True)
        args.save.with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n")
        rounds.round(4).to_csv(args.save.with_suffix(".csv"), index=False)
        sizes.round(4).to_csv(args.save.with_name(args.save.name + "-sizes.csv"), index=False)
        plot(sizes, args.save.with_suffix(".svg"))


if __name__ == "__main__":
    sys.exit(main())
