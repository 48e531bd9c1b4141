r"""Learning curves of Random on validation points at the scale ``small``, for training settings.

The initial labels are those of the protocol's seed; each round adds as many random ones as the
protocol asks for. The test set is not read.
One line of JSON for each round that is measured, with the seconds of training since the last one.

    python -m benchmarks.small_settings cifar10-1k@small --set network.training.max-steps=600 \
        --set network.retrain=continue
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

from spinal.data import load_dataset, make_splits
from spinal.experiments import load_protocol
from spinal.networks import build_network, compute_features, predict_logits, train


def main() -> None:
    """Print the curve, round by round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("protocol")
    parser.add_argument("--set", action="append", default=[], help="as in spinal run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labels", type=int, nargs="+", help="only these numbers of labels")
    parser.add_argument("--every", type=int, default=1, help="rounds between two measurements")
    options = parser.parse_args()
    torch.set_num_threads(1)
    p = load_protocol(options.protocol, options.set)
    data = load_dataset(p.dataset)
    splits = make_splits(
        len(data.train_labels), len(data.test_labels), pool=p.pool, validation=p.validation,
        initial=p.initial, seed=options.seed,
    )  # fmt: skip
    others = np.setdiff1d(splits.members, splits.initial)
    order = np.random.default_rng(options.seed).permutation(others)
    labelled = np.concatenate([splits.initial, order])
    network = build_network(
        p.network.architecture, data.train_images.shape[1:], len(data.classes), **p.network.options
    )
    counts = options.labels or [p.initial + k * p.batch for k in range(p.rounds + 1)]
    seconds = 0.0
    for number, n in enumerate(counts):
        rows, before = labelled[:n], time.process_time()
        train(
            network, data.train_images[rows], data.train_labels[rows], p.training(),
            seed=1000 * options.seed + number,
            start="scratch" if number == 0 else p.network.retrain,
        )  # fmt: skip
        seconds += time.process_time() - before
        if number % options.every and n != counts[-1]:
            continue
        logits = predict_logits(
            network, compute_features(network, data.train_images, splits.validation)
        )
        right = logits.argmax(1).numpy() == data.train_labels[splits.validation]
        line = {
            "protocol": p.name, "set": options.set, "seed": options.seed, "labels": n,
            "steps": p.training().steps(n), "validation": round(100 * float(right.mean()), 2),
            "seconds": round(seconds, 1),
        }  # fmt: skip
        print(json.dumps(line), flush=True)
        seconds = 0.0


if __name__ == "__main__":
    main()
