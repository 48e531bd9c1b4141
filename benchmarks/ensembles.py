"""SPNs on the members of an ensemble against the plain ensemble, for the same number of networks.

A LeNet is trained on random labels. Every contender trains five networks in total, including those
that choose settings. The exceptions are ``one network``, ``SPN`` and snapshots; each snapshot takes
a quarter of the steps of a network. Accuracy, negative log-likelihood and calibration error are
measured on test points. One line of JSON for each fit.

    python -m benchmarks.ensembles --datasets digits mnist --labels 100 300 --seeds 3
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

from spinal.data import as_points, load_dataset
from spinal.networks import TUNED, build_network, compute_features, train
from spinal.posteriors import SPN, Deterministic, Ensemble, FitContext, Posterior, SPNEnsemble, View
from spinal.posteriors.held_out import held_out_folds
from spinal.runs.metrics import evaluate

NETWORKS = 5


def contenders(held_out: int) -> dict[str, Posterior]:
    """By name; ``held_out`` is the number of networks that are trained to choose settings."""
    return {
        "one network": Deterministic(),
        "SPN": SPN(),
        "ensemble": Ensemble(members=NETWORKS),
        "SPN ensemble": SPNEnsemble(members=NETWORKS - held_out),
        "ensemble of snapshots": Ensemble(members=NETWORKS, snapshots=0.25),
        "SPN ensemble of snapshots": SPNEnsemble(members=NETWORKS, snapshots=0.25),
    }


def measure(name: str, n: int, seed: int, n_test: int) -> None:
    """Print the lines of one dataset, number of labels and seed."""
    data = load_dataset(name)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(data.train_labels))[:n])
    test = np.sort(rng.permutation(len(data.test_labels))[:n_test])
    labels = torch.as_tensor(data.train_labels[rows]).long()
    network = build_network("lenet", data.train_images.shape[1:], len(data.classes))
    train(network, data.train_images[rows], labels, TUNED, seed=seed)
    points = as_points(data.train_images)
    labelled = View(network, points, rows, compute_features(network, points, rows))
    points = as_points(data.test_images)
    seen = View(network, points, test, compute_features(network, points, test))
    context = FitContext(len(data.classes), seed=seed, training=TUNED)
    for by, posterior in contenders(len(list(held_out_folds(labels, seed)))).items():
        posterior.fit(labelled, labels, context)
        values = evaluate(posterior.predict(seen).numpy(), data.test_labels[test])
        found = {key: round(float(values[key]), 4) for key in ("accuracy", "nll", "ece")}
        line = {"dataset": name, "labels": n, "seed": seed, "by": by, **found}
        print(json.dumps(line), flush=True)


def main() -> None:
    """Measure every dataset, number of labels and seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["digits", "mnist"])
    parser.add_argument("--labels", nargs="+", type=int, default=[100, 300])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", type=int, default=3000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(options.seeds):
        for name in options.datasets:
            for n in options.labels:
                measure(name, n, seed, options.test)


if __name__ == "__main__":
    main()
