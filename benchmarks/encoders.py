"""Accuracy and cost of image encoders.

For each encoder, logistic regression is trained on its features with random labels and tested, and
the seconds per image on one core are measured. ``NAME, flipped`` is the mean of the features of an
image and of its mirror image.

    python -m benchmarks.encoders --out results/encoders.md [--sets cifar-10 solar-cells]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.answers import Logistic
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import read_raw, read_suite
from benchmarks.anywhere.vectors import unit_length
from benchmarks.machine import commit
from benchmarks.results import Results
from spinal.encoders import load_encoder
from spinal.encoders.images import require_images

ENCODERS = (
    "efficientnet-lite0@128", "efficientnet-lite0@128, flipped", "efficientnet-lite0@160",
    "efficientnet-lite0@224", "efficientnet-lite1@128", "efficientnet-lite2@128",
    "efficientnet-lite2@160", "efficientnet-lite0+efficientnet-lite2@128",
    "efficientnet-lite2@224",
)  # fmt: skip
#: Images of the pool and of the test part.
POOL, TEST = 1200, 800
LABELS = (50, 100, 300)
BATCH = 32


def features(name: str, images: list[Any]) -> tuple[NDArray[np.float32], float]:
    """Vectors ``[N, D]`` of images, and seconds per image, preparation included."""
    plain, _, flipped = name.partition(", ")
    encoder = require_images(load_encoder(plain, device="cpu"))
    encoder.embed(np.zeros((BATCH, encoder.size, encoder.size, 3), np.uint8))  # to warm up
    start, vectors = time.process_time(), []
    for first in range(0, len(images), BATCH):
        prepared = np.stack([encoder.prepare(image) for image in images[first : first + BATCH]])
        batch = encoder.embed(prepared)
        if flipped:
            batch = (batch + encoder.embed(prepared[:, :, ::-1].copy())) / 2
        vectors.append(batch)
    return np.concatenate(vectors), (time.process_time() - start) / len(images)


def accuracies(
    x: NDArray, y: NDArray[np.int64], test: NDArray, y_test: NDArray[np.int64], seeds: range
) -> dict[str, float]:
    """Mean accuracy and likelihood over seeds, for each number of labels."""
    mean = x.mean(0)
    x, test = unit_length(x - mean), unit_length(test - mean)
    n_classes, result = int(max(y.max(), y_test.max())) + 1, {}
    for n in LABELS:
        values = []
        for seed in seeds:
            drawn = np.random.default_rng(seed).permutation(len(y))[:n]
            model = Logistic(n_classes, seed)
            model.fit(x[drawn], y[drawn])
            values.append(measure(model.predict(test), y_test, np.ones(len(y_test))))
        for key in ("accuracy", "nll"):
            result[f"{key} {n}"] = round(float(np.mean([v[key] for v in values])), 5)
    return result


def main() -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoders")
    parser.add_argument("--out", type=Path, default=Path("results/encoders.md"))
    parser.add_argument("--sets", nargs="+", default=["cifar-10", "solar-cells"])
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--seeds", type=int, default=10, help="draws of labels")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = Results(options.out.with_suffix(".jsonl"), ("set", "encoder"))
    entries = {entry.name: entry for entry in read_suite()}
    measured = {"seeds": options.seeds, "commit": commit("spinal", "benchmarks")}
    with threadpool_limits(1):
        for name in options.sets:
            points = read_raw(entries[name])
            draw = np.random.default_rng(0)
            pool, test = (
                draw.permutation(len(y))[:size]
                for y, size in ((points.y_train, POOL), (points.y_test, TEST))
            )
            images = [points.x_train[i] for i in pool] + [points.x_test[i] for i in test]
            for encoder in options.encoders:
                line: dict[str, Any] = {"set": name, "encoder": encoder}
                if line in results:
                    continue
                vectors, seconds = features(encoder, images)
                line |= {"ms": round(1000 * seconds, 2)} | accuracies(
                    vectors[: len(pool)], points.y_train[pool], vectors[len(pool) :],
                    points.y_test[test], range(options.seeds),
                )  # fmt: skip
                results.add([line | measured])
                print(line, flush=True)
    write(pd.DataFrame(results.lines), options.out)


def write(table: pd.DataFrame, path: Path) -> None:
    """The tables, as Markdown."""
    text = [
        "# Image encoders: what better features are worth\n",
        f"`python -m benchmarks.encoders`, commit {', '.join(sorted(set(table['commit'])))}: "
        f"logistic regression on random labels, {POOL:,} images to draw from, {TEST} to test, "
        f"mean of {table['seeds'].iloc[0]} draws (seeds from 0); milliseconds per image of one "
        "core, decoding and scaling included, relative to the first: the machine was busy.\n",
    ]
    for name, part in table.groupby("set", sort=False):
        text += [
            f"## {name}\n",
            "| encoder | " + " | ".join(f"accuracy at {n} | NLL" for n in LABELS) + " | time |",
            "|---" + "|--:" * (2 * len(LABELS) + 1) + "|",
        ]
        for row in part.to_dict("records"):
            cells = [f"{100 * row[f'accuracy {n}']:.1f} | {row[f'nll {n}']:.3f}" for n in LABELS]
            ratio = row["ms"] / part["ms"].iloc[0]
            text.append(f"| {row['encoder']} | {' | '.join(cells)} | {ratio:.1f} x |")
        text.append("")
    path.write_text("\n".join(text))


if __name__ == "__main__":
    main()
