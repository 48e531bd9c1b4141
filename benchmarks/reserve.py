"""How the SPN should get points that its network has not seen: ways to choose its settings.

SPN-CNN goes through the rounds of a protocol once for each way, from the same labels. Accuracy,
negative log-likelihood and calibration error are measured on the validation points of the protocol;
the test set is not read. One line of JSON for each round, classifier and way.

    python -m benchmarks.reserve svhn-1k@small --ways reserve=100 reserve=0
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from spinal.data import Pool, load_dataset, make_splits
from spinal.experiments import load_protocol
from spinal.learner import ActiveLearner
from spinal.runs.metrics import evaluate


def measure(name: str, way: str, seed: int) -> None:
    """Print the lines of one way."""
    p = load_protocol(name, [f"posterior.{setting}" for setting in way.split(",")])
    data = load_dataset(p.dataset)
    splits = make_splits(
        len(data.train_labels), len(data.test_labels), pool=p.pool, validation=p.validation,
        initial=p.initial, seed=seed,
    )  # fmt: skip
    learner = ActiveLearner(
        Pool(data.train_images, data.classes, members=splits.members),
        (p.network.architecture, p.network.options),
        seed=seed,
        posterior=p.posterior_settings("spn"),
        training=p.training(),
        retrain=p.network.retrain,
        candidates=p.candidates,
    )
    indices, labels = splits.initial, data.train_labels[splits.validation]
    for _ in range(p.rounds + 1):
        learner.tell(indices, data.train_labels[indices])
        before = time.process_time()
        learner.fit()
        seconds = time.process_time() - before
        seen = learner.view(data.train_images[splits.validation])
        said = {
            "spn": learner.predict_log_proba(seen),
            "network": learner.predict_log_proba(seen, by="network"),
            "logistic": learner.fit_beside("logistic").predict(seen).numpy(),
        }
        for by, log_probs in said.items():
            values = evaluate(log_probs, labels)
            found = {key: round(float(values[key]), 4) for key in ("accuracy", "nll", "ece")}
            line = {
                "protocol": name, "way": way, "seed": seed, "labels": len(learner.pool.labels),
                "by": by, **found, "fit_seconds": round(seconds, 1),
            }  # fmt: skip
            print(json.dumps(line), flush=True)
        indices = learner.ask(p.batch)


def main() -> None:
    """Measure every way and seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("protocol")
    parser.add_argument("--ways", nargs="+", default=["reserve=100", "reserve=0"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in options.seeds:
        for way in options.ways:
            measure(options.protocol, way, seed)


if __name__ == "__main__":
    main()
