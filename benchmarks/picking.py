"""The SPN's recipe, chosen by the learning curves that it leads to.

MNIST and Fashion-MNIST, a pool of 6,000, 20 labels and then 10 a round up to 200; every recipe with
the same initial sets, networks and test points, so that all that differs is what was picked (and
who predicts). Random and Deterministic stand beside them. Runs that are finished are skipped.

    python benchmarks/picking.py --out runs/picking --data-dir DIR
    python benchmarks/picking.py --out runs/picking --data-dir DIR --summary results/picking
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from spinal.experiments.grid import make_runs, run_grid
from spinal.experiments.protocol import CircuitProtocol, NetworkProtocol, Protocol
from spinal.experiments.runs import Run

DATASETS = ("mnist", "fashion-mnist")
ACQUISITIONS = ("max-entropy", "variation-ratio")

#: What differs from the preset ``default`` (the first key), or from another preset.
RECIPES: dict[str, CircuitProtocol] = {
    name: CircuitProtocol(preset="paper" if name == "paper" else "default", recipe=changes)
    for name, changes in {
        "default": {},
        "unbalanced": {"balance": 0.0},
        "narrow": {"scale": 2.0},
        "short": {
            "start": "random", "units": "each", "scale": 1.0, "learn_scale": True,
            "weight_spread": 1.0, "balance": 0.0,
            "fit": {
                "generative": 0.0, "learning_rate": 0.03, "schedule": "constant", "steps": 150,
                "batch_size": None, "leaf_dropout": 0.1,
            },
        },
        "random start": {
            "start": "random", "units": "each", "scale": 3.0, "weight_spread": 1.5, "balance": 0.0,
            "fit": {"generative": 0.5, "learning_rate": 0.05, "leaf_dropout": 0.3},
        },
        "paper": {},
    }.items()
}  # fmt: skip


def protocol(dataset: str, circuit: CircuitProtocol, **network: Any) -> Protocol:
    """The experiment, but for who picks."""
    return Protocol(
        name=dataset, dataset=dataset, initial=20, batch=10, rounds=18, pool=6000, validation=1000,
        test=4000, network=NetworkProtocol(name="lenet", **network),
        circuit=replace(circuit, grid=(16, 8)),
    )  # fmt: skip


def main() -> None:
    """Run what is left of the grid, or sum it up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/picking"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--acquisitions", nargs="+", default=ACQUISITIONS, choices=ACQUISITIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    runs: list[Run] = []
    for seed in args.seeds:
        baselines = [protocol(dataset, CircuitProtocol()) for dataset in args.datasets]
        runs += make_runs(baselines, ["random"], [], [seed], args.out / "baselines")
        runs += make_runs(
            baselines, ["deterministic"], args.acquisitions, [seed], args.out / "baselines"
        )
        for name in args.recipes:
            protocols = [protocol(dataset, RECIPES[name]) for dataset in args.datasets]
            runs += make_runs(
                protocols, ["spn-cnn"], args.acquisitions, [seed], args.out / name.replace(" ", "-")
            )
    run_grid(runs, workers=args.workers, data_dir=args.data_dir)


if __name__ == "__main__":
    main()
