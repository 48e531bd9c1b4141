"""How many of the answers that `spinal label` suspects are wrong, and the gain of asking again.

300 answers on features of ``benchmarks.anywhere``: 100 about random points, then 200 drawn from the
800 points with the smallest margin. A share of them is wrong: replaced by another class at random.
Answers are checked as on the page. k is the expected number of wrong answers.

    python -m benchmarks.wrong_answers --cache DIR --out results/wrong-answers.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.anywhere.features import load_points
from benchmarks.anywhere.sets import Points, read_suite
from benchmarks.machine import commit
from spinal.classifiers import fit_gaussian, held_out_parts
from spinal.data import as_points
from spinal.label.learning.rounds import FOLDS, Snapshot, check_labels
from spinal.label.learning.suspicion import suspect_answers
from spinal.label.learning.worker import AGAIN

SETS = ("cifar-10--efficientnet-lite0", "solar-cells--efficientnet-lite0", "newsgroups--sentences")
ANSWERS, FIRST, CANDIDATES = 300, 100, 800


def fit(x: NDArray, y: NDArray[np.int64], points: Points) -> NDArray:
    """Class probabilities of all points of the set by a circuit that learnt these; test last."""
    features, labels = torch.from_numpy(x), torch.from_numpy(y)
    parts = held_out_parts(features, labels, FOLDS, 0)
    model, _ = fit_gaussian(features, labels, len(points.classes), parts, ("common",))
    everything = torch.from_numpy(np.concatenate([points.x_train, points.x_test]))
    return model.log_probs(everything).exp().numpy()


def measure(points: Points, wrong: float, seed: int) -> dict[str, float]:
    """Shares of wrong answers among those listed, and accuracies after learning."""
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
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    entries = {entry.full: entry for entry in read_suite()}
    lines = [f"`python -m benchmarks.wrong_answers`, seeds 0 to {options.seeds - 1}, commit "
             f"{commit('spinal')}; percent", ""]  # fmt: skip
    for name in SETS:
        points = load_points(entries[name], options.cache)
        for wrong in (0.05, 0.1):
            runs = [measure(points, wrong, seed) for seed in range(options.seeds)]
            if len(lines) == 2:
                lines += [
                    f"| set | wrong | {' | '.join(runs[0])} |",
                    "|---" * (len(runs[0]) + 2) + "|",
                ]
            means = [f"{100 * np.mean([run[key] for run in runs]):.1f}" for key in runs[0]]
            lines.append(f"| {name} | {100 * wrong:.0f} | {' | '.join(means)} |")
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
