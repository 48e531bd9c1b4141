"""How long settings of the SPN can be kept as labels are added: `growth` of the posterior ``spn``.

A LeNet is trained from scratch on 1,000, 2,000, 4,000 and 8,000 random labels, or on other numbers.
For each number, the SPN is fitted with the settings that held-out networks chose at that number,
and with those that they chose at each smaller number. Accuracy, negative log-likelihood and
calibration error are measured on test points. One line of JSON for each fit.

    python -m benchmarks.growth --datasets fashion-mnist cifar10 --seeds 1
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

from spinal.classifiers.blend import Blend, refit_on_network
from spinal.data import as_points, load_dataset
from spinal.networks import TUNED, build_network, compute_features, predict_logits, train
from spinal.posteriors import FitContext, View
from spinal.posteriors.held_out import fit_mixture
from spinal.runs.metrics import evaluate


def measure(name: str, counts: list[int], seed: int, n_test: int) -> None:
    """Print the lines of one dataset and seed."""
    data = load_dataset(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.train_labels))
    test = rng.permutation(len(data.test_labels))[:n_test]
    points, n_classes = as_points(data.train_images), len(data.classes)
    chosen: dict[int, Blend] = {}
    for n in counts:
        rows = np.sort(order[:n])
        labels = torch.as_tensor(data.train_labels[rows]).long()
        network = build_network("lenet", data.train_images.shape[1:], n_classes)
        train(network, data.train_images[rows], labels, TUNED, seed=1000 * seed + n)
        view = View(network, points, rows, compute_features(network, points, rows))
        context = FitContext(n_classes, seed=1000 * seed + n, training=TUNED)
        chosen[n], _ = fit_mixture(view, labels, context)
        z = compute_features(network, data.test_images, test)
        head = predict_logits(network, z).log_softmax(1)
        said = {"head": head} | {
            f"chosen at 1/{n // m}": refit_on_network(view.features, labels, n_classes, blend)
            .log_probs(z, head)
            .float()
            for m, blend in chosen.items()
        }
        for by, log_probs in said.items():
            values = evaluate(log_probs.numpy(), data.test_labels[test])
            found = {key: round(float(values[key]), 4) for key in ("accuracy", "nll", "ece")}
            line = {"dataset": name, "seed": seed, "labels": n, "by": by, **found}
            print(json.dumps(line), flush=True)


def main() -> None:
    """Measure every dataset and seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["fashion-mnist", "cifar10"])
    parser.add_argument("--labels", nargs="+", type=int, default=[1000, 2000, 4000, 8000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--test", type=int, default=5000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(options.seeds):
        for name in options.datasets:
            measure(name, options.labels, seed, options.test)


if __name__ == "__main__":
    main()
