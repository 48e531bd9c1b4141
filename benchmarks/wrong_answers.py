"""How many of the answers that `spinal label` suspects are wrong, and the gain of asking again.

300 answers on features of ``benchmarks.anywhere``: 100 about random points, then 200 drawn from the
800 points with the smallest margin. A share of them is wrong: replaced by another class at random.
Answers are checked as on the page. k is the expected number of wrong answers.

The labels of solar-cells are noisy themselves. The package elpv-dataset has the probabilities that
experts gave; labels between 0 and 1 are *doubtful*.

    python -m benchmarks.wrong_answers --cache DIR --experts labels.csv --out FILE
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.anywhere.features import load_points
from benchmarks.anywhere.sets import Points, image_paths, read_suite
from benchmarks.machine import commit
from spinal.classifiers import fit_gaussian, held_out_parts
from spinal.data import as_points
from spinal.label.learning.rounds import FOLDS, Snapshot, check_labels
from spinal.label.learning.suspicion import suspect_answers
from spinal.label.learning.worker import AGAIN

SETS = ("cifar-10--efficientnet-lite0", "solar-cells--efficientnet-lite0", "newsgroups--sentences")
ANSWERS, FIRST, CANDIDATES = 300, 100, 800


def doubtful_cells(experts: Path) -> NDArray[np.bool_]:
    """Which training points of solar-cells experts were not sure of.

    Args:
        experts: ``labels.csv`` of elpv-dataset: on each line a file, the probability, and a type.
    """
    lines = [line.split() for line in experts.read_text().splitlines()]
    probability = {Path(file).name: float(value) for file, value, _ in lines}
    sure = {0.0, 1.0}
    paths = image_paths("solar-cells", "train")
    return np.array([probability[path.name] not in sure for path in paths])


def fit(x: NDArray, y: NDArray[np.int64], points: Points) -> NDArray:
    """Class probabilities of all points of the set by a circuit that learnt these; test last."""
    features, labels = torch.from_numpy(x), torch.from_numpy(y)
    parts = held_out_parts(features, labels, FOLDS, 0)
    model, _ = fit_gaussian(features, labels, len(points.classes), parts, ("common",))
    everything = torch.from_numpy(np.concatenate([points.x_train, points.x_test]))
    return model.log_probs(everything).exp().numpy()


def measure(
    points: Points, wrong: float, seed: int, doubtful: NDArray[np.bool_] | None
) -> dict[str, float]:
    """Shares of wrong answers among those listed, and accuracies after learning.

    With ``doubtful`` points of the training set, also shares of wrong or doubtful answers.
    """
    random = np.random.default_rng(seed)
    x, n_classes, n_train = points.x_train, len(points.classes), len(points.y_train)
    first = random.permutation(n_train)[:FIRST]
    ordered = np.sort(fit(x[first], points.y_train[first], points)[:n_train])
    margin = ordered[:, -1] - ordered[:, -2]
    margin[first] = np.inf
    drawn = random.permutation(margin.argsort()[:CANDIDATES])[: ANSWERS - FIRST]
    asked = np.concatenate([first, drawn])
    true = points.y_train[asked]
    mistaken = random.random(ANSWERS) < wrong
    given = np.where(mistaken, (true + random.integers(1, n_classes, ANSWERS)) % n_classes, true)

    nobody = np.zeros(ANSWERS, bool)
    snapshot = Snapshot(np.arange(ANSWERS), as_points(x[asked]), given, nobody, nobody)
    rows, probs = check_labels(snapshot, n_classes, seed)
    labels, k = given[rows], round(wrong * ANSWERS)
    own = probs[np.arange(len(rows)), labels]
    usual = [own[labels == c].mean() if (labels == c).any() else np.inf for c in range(n_classes)]
    others = np.arange(n_classes) != labels[:, None]
    excess = np.where((probs >= usual) & others, probs - own[:, None], 0).max(1)
    orders = {
        "listed": rows[suspect_answers(probs, labels)[0]],
        "argmax": rows[np.argsort(own - probs.max(1), kind="stable")],
        "confident learning": rows[np.argsort(-excess, kind="stable")[: (excess > 0).sum()]],
    }
    results = {name: mistaken[order[:k]].mean() for name, order in orders.items()}
    results["first 10"] = mistaken[orders["listed"][:10]].mean()
    results["recall"] = mistaken[orders["listed"]].sum() / mistaken.sum()
    if doubtful is not None:
        either = mistaken | doubtful[asked]
        results["listed, or doubtful"] = either[orders["listed"][:k]].mean()
        results["first 10, or doubtful"] = either[orders["listed"][:10]].mean()
        results["doubtful"] = doubtful[asked].mean()

    again, pruned = orders["listed"][: int(AGAIN * ANSWERS)], orders["listed"][:k]
    corrected = given.copy()
    corrected[again] = true[again]
    kept = np.setdiff1d(np.arange(ANSWERS), pruned)
    taught = {
        "all right": (asked, true), "as given": (asked, given), "asked again": (asked, corrected),
        "without suspects": (asked[kept], given[kept]),
    }  # fmt: skip
    for name, (rows, labels) in taught.items():
        predicted = fit(x[rows], labels, points)[n_train:].argmax(1)
        results[name] = (predicted == points.y_test).mean()
    return results


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, required=True, help="where features are kept")
    parser.add_argument("--experts", type=Path, help="labels.csv of elpv-dataset")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    entries = {entry.full: entry for entry in read_suite()}
    lines = [f"`python -m benchmarks.wrong_answers`, seeds 0 to {options.seeds - 1}, commit "
             f"{commit('spinal')}; percent", ""]  # fmt: skip
    rows: list[dict[str, str]] = []
    for name in options.sets:
        points, doubtful = load_points(entries[name], options.cache), None
        if options.experts is not None and name.startswith("solar-cells"):
            doubtful = doubtful_cells(options.experts)
        for wrong in (0.05, 0.1):
            runs = [measure(points, wrong, seed, doubtful) for seed in range(options.seeds)]
            means = {key: f"{100 * np.mean([run[key] for run in runs]):.1f}" for key in runs[0]}
            rows.append({"set": name, "wrong": f"{100 * wrong:.0f}"} | means)
            print(rows[-1], flush=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(row.get(key, '') for key in columns)} |" for row in rows]
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
