"""Accuracy and cost of training settings for the LeNet, and of other networks with their own.

Labelled points are drawn at random from the training set; accuracy is measured on 2,000 other
points of the training set (297 for digits), and seconds on one core. There is a row for each recipe
and dataset, with the mean over all seeds, and the seconds of one fit in brackets.

    python benchmarks/network_settings.py --recipes tuned "batch 64" --seeds 3
    python benchmarks/network_settings.py --recipes tuned resnet-slim vgg \
      --datasets cifar10 svhn fashion-mnist --labels 1000
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import numpy as np
import torch

from spinal.data import Dataset, load_dataset
from spinal.networks import (
    PAPER_LENET,
    SLIM,
    TUNED,
    TrainSettings,
    build_network,
    compute_features,
    predict_logits,
)
from spinal.networks import train as train_network

PLAIN = replace(TUNED, label_smoothing=0.0)
BATCH_32 = replace(PLAIN, batch_size=32, epochs=25)
SMOOTHED = replace(BATCH_32, learning_rate=4e-3, label_smoothing=0.1)
RECIPES: dict[str, TrainSettings] = {
    "tuned": TUNED,
    "no smoothing": PLAIN,
    "no smoothing, 15 epochs": replace(PLAIN, epochs=15),
    "no smoothing, 15 epochs, rate .001": replace(PLAIN, epochs=15, learning_rate=1e-3),
    "no smoothing, 25 epochs": replace(PLAIN, epochs=25),
    "no smoothing, shifts": replace(PLAIN, augment="shift"),
    "batch 32": BATCH_32,
    "batch 32, 100 steps": replace(BATCH_32, min_steps=100),
    "batch 32, rate .001": replace(BATCH_32, learning_rate=1e-3),
    "batch 32, rate .004": replace(BATCH_32, learning_rate=4e-3),
    "batch 32, decay .1": replace(BATCH_32, weight_decay=0.1),
    "batch 32, decay .5": replace(BATCH_32, weight_decay=0.5),
    "batch 32, smoothing .1": replace(BATCH_32, label_smoothing=0.1),
    "batch 32, rate .004, smoothing .1": SMOOTHED,
    "batch 32, rate .004, smoothing .2": replace(SMOOTHED, label_smoothing=0.2),
    "batch 64": replace(PLAIN, batch_size=64, epochs=51, min_steps=300),
    "paper": PAPER_LENET,
    "resnet-slim": SLIM,
    "vgg": TUNED,
}
#: Networks other than the LeNet, by recipe, and their widths: those of `spinal label`.
NETWORKS = {"resnet-slim": 1.0, "vgg": 0.25}


def measure(dataset: Dataset, labels: int, recipe: str, seed: int) -> tuple[float, float]:
    """Validation accuracy, and seconds of CPU time, of one fit."""
    order = np.random.default_rng(seed).permutation(len(dataset.train_labels))
    held = min(2000, len(order) - 1000)
    validation, labelled = order[:held], np.sort(order[held : held + labels])
    network = build_network(
        recipe if recipe in NETWORKS else "lenet",
        dataset.train_images.shape[1:],
        len(dataset.classes),
        width=NETWORKS.get(recipe, 1.0),
    )
    network.preprocess.fit(dataset.train_images)
    before = time.process_time()
    train_network(
        network,
        dataset.train_images[labelled],
        dataset.train_labels[labelled],
        RECIPES[recipe],
        seed=seed,
    )
    seconds = time.process_time() - before
    logits = predict_logits(network, compute_features(network, dataset.train_images, validation))
    right = logits.argmax(1).numpy() == dataset.train_labels[validation]
    return float(right.mean()), seconds


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=RECIPES)
    parser.add_argument("--datasets", nargs="+", default=["digits", "mnist", "fashion-mnist"])
    parser.add_argument("--labels", nargs="+", type=int, default=[20, 100, 300, 1000])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| recipe | dataset | " + " | ".join(f"{n} labels" for n in options.labels) + " |")
    print("|---" * (2 + len(options.labels)) + "|")
    for name in options.datasets:
        dataset = load_dataset(name)
        for recipe in options.recipes:
            cells = []
            for labels in options.labels:
                runs = [measure(dataset, labels, recipe, seed) for seed in range(options.seeds)]
                accuracy, seconds = np.mean(runs, axis=0)
                cells.append(f"{accuracy:.3f} ({seconds:.1f})")
            print(f"| {recipe} | {name} | " + " | ".join(cells) + " |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
