"""Error of the forecast of `ActiveLearner.advice`.

Logistic regression asks for the points with the smallest margin, in batches of 10; see
``benchmarks.coverage`` for the data. From 70 labels on, the forecast of how many of 500 predictions
will change with 50 more labels is compared with the actual number.

    python -m benchmarks.advice --cache DIR --out results/advice.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.anywhere.sets import read_suite
from benchmarks.coverage import World
from benchmarks.machine import commit
from spinal.learner.advice import History

SETS = ("cifar-10--efficientnet-lite0", "newsgroups--sentences", "rotten-tomatoes--sentences")
FIRST, LAST, BATCH, MORE, WATCHED = 20, 370, 10, 50, 500
FORECASTS = (70, 120, 170, 220, 270, 320)


def observe(world: World, seed: int) -> History:
    """What successive models predict."""
    random = np.random.default_rng(seed)
    watched, pool = np.split(random.permutation(len(world.y)), [WATCHED])
    pool = pool[:2500]
    asked, history = pool[:FIRST], History.begin(watched)
    while True:
        model = world.fit(asked)
        history = history.add(len(asked), model(watched).argmax(1).numpy())
        if len(asked) >= LAST:
            return history
        left = np.setdiff1d(pool, asked)
        top = model(left).topk(2, 1).values
        asked = np.append(asked, left[(top[:, 0] - top[:, 1]).argsort()[:BATCH].numpy()])


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, required=True, help="where features are kept")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        f"`python -m benchmarks.advice`, seeds 0 to {options.seeds - 1}, commit {commit('spinal')}",
        "",
        "| set | labels | changed, % | forecast, % | off by a factor of | in the 80 % interval |",
        "|---|---|---|---|---|---|",
    ]
    entries = {entry.full: entry for entry in read_suite()}
    for name in SETS:
        world = World(entries[name], options.cache)
        histories = [observe(world, seed) for seed in range(options.seeds)]
        for labels in FORECASTS:
            changes, advices = [], []
            for history in histories:
                known = history.labels <= labels
                now, then = history.predictions[np.isin(history.labels, (labels, labels + MORE))]
                changes.append((now != then).mean())
                so_far = History(history.points, history.labels[known], history.predictions[known])
                advices.append(so_far.advice(history.points[:0], MORE))
            truth, said = (
                np.array(changes),
                np.array([[a.changes, a.low, a.high] for a in advices if a]),
            )
            factor = np.exp(np.median(np.abs(np.log(np.maximum(truth, 1e-3) / said[:, 0]))))
            inside = int(((said[:, 1] <= truth) & (truth <= said[:, 2])).sum())
            lines.append(
                f"| {name} | {labels} | {100 * truth.mean():.1f} | {100 * said[:, 0].mean():.1f} | "
                f"{factor:.2f} | {inside} of {len(truth)} |"
            )
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
