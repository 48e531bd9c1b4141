"""Several classes for a point: what answers are worth, on points that are joined from real ones.

Two images stand side by side, or two texts one after the other. The first classes of the set are
those that are asked for; a point has those of them that its two parts have, so none, one or two.
A simulated person answers what a contender asks. Contenders are `spinal.learner.MultiLearner`, with
and without its parts, and one logistic regression for each class on random answers.

    python -m benchmarks.multi --half develop --cache DIR --out results/multi
    python -m benchmarks.multi --out results/multi --report results/label-multi.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from benchmarks.anywhere.features import tfidf_svd
from benchmarks.anywhere.sets import Points, read_raw, read_suite
from benchmarks.anywhere.vectors import unit_length
from benchmarks.machine import commit
from benchmarks.results import Results
from spinal.acquisition.multi import MultiHerding
from spinal.encoders import encode, load_encoder
from spinal.learner import MultiLearner

#: By half: sets, and how many of their classes are asked for.
SETS = {"develop": {"cifar-10": 6, "newsgroups": 6}, "report": {"trash": 5, "reuters52": 6}}
POOL, TEST = 2000, 1000
ANSWERS = (20, 50, 100, 200, 300)
REPORTED = (50, 100, 300)
#: spinal: how it chooses, and what it learns from.
SPINAL = {
    "spinal": ("mean", "pool"),
    "spinal, from labels": ("mean", "labels"),
    "spinal, from labels, max": ("max", "labels"),
    "spinal, from labels, random": ("", "labels"),
}
LOGISTIC = "logistic regression, random"
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SIDE = 96
#: A limit of the probability other than one half, to compare.
LOWER = 0.4


@dataclass(frozen=True, eq=False)
class Task:
    """A pool with hidden classes, and test points: features ``[N, D]``, truth ``[N, C]``."""

    x_pool: NDArray[np.float32]
    y_pool: NDArray[np.bool_]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.bool_]


def make_task(name: str, n_classes: int, cache: Path) -> Task:
    """Join points of a set; features are kept."""
    path = cache / f"multi-{name}.npz"
    if not path.exists():
        entry = next(e for half in SETS for e in read_suite(half) if e.name == name)
        arrays = _join(read_raw(entry), n_classes)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)  # type: ignore[arg-type]
    with np.load(path) as file:
        return Task(*(file[key] for key in ("x_pool", "y_pool", "x_test", "y_test")))


def _join(points: Points, n_classes: int) -> dict[str, NDArray]:
    random = np.random.default_rng(0)
    # The most frequent classes, so that none is too rare to be tested.
    asked = np.argsort(-np.bincount(points.y_train), kind="stable")[:n_classes]
    parts: list[Any] = []
    truth = []
    for x, y, n in ((points.x_train, points.y_train, POOL), (points.x_test, points.y_test, TEST)):
        pairs = random.integers(0, len(y), (n, 2))
        truth.append((y[pairs][:, :, None] == asked).any(1))
        parts.append([_beside(x[i], x[j]) for i, j in pairs])
    if isinstance(parts[0][0], str):
        x_pool, x_test = tfidf_svd(*parts)
    else:
        encoder = load_encoder("efficientnet-lite0@128")
        x_pool, x_test = (encode(encoder, part) for part in parts)
    return {"x_pool": x_pool, "y_pool": truth[0], "x_test": x_test, "y_test": truth[1]}


def _beside(one: Any, two: Any) -> Any:
    if isinstance(one, str):
        return f"{one}\n{two}"
    squares = [np.asarray(Image.fromarray(image).resize((SIDE, SIDE))) for image in (one, two)]
    return np.concatenate(squares, 1)


def run(task: Task, contender: str, seed: int) -> list[dict[str, Any]]:
    """Results after each batch of answers."""
    if contender == LOGISTIC:
        return _run_logistic(task, seed)
    combine, learn_from = SPINAL[contender]
    order = np.random.default_rng(seed).permutation(len(task.x_pool))
    learner = MultiLearner(
        task.x_pool, [str(i) for i in range(task.y_pool.shape[1])], seed=seed,
        acquisition=MultiHerding(combine=combine or "mean"), learn_from=learn_from,
    )  # fmt: skip
    results, asked = [], 0
    for n in ANSWERS:
        rows = learner.ask(n - asked) if combine else order[asked:n]
        learner.tell(rows, task.y_pool[rows])
        asked = n
        began = time.process_time()
        learner.fit()
        seconds = time.process_time() - began
        results.append({"answers": n, "seconds": seconds, **_measure(task, learner, None)})
    return results


def _run_logistic(task: Task, seed: int) -> list[dict[str, Any]]:
    order = np.random.default_rng(seed).permutation(len(task.x_pool))
    mean = task.x_pool.mean(0)
    x_pool, x_test = (unit_length(x - mean) for x in (task.x_pool, task.x_test))
    results = []
    for n in REPORTED:
        rows, began = order[:n], time.process_time()
        columns = [_logistic(x_pool[rows], y, x_test) for y in task.y_pool[rows].T]
        seconds = time.process_time() - began
        measured = _measure(task, None, np.stack(columns, 1))
        results.append({"answers": n, "seconds": seconds, **measured})
    return results


def _logistic(x: NDArray, y: NDArray[np.bool_], x_test: NDArray) -> NDArray:
    """The probability of a class; C by the likelihood of answers out of their fold."""
    few = min(int(y.sum()), int((~y).sum()))
    if few == 0:
        return np.full(len(x_test), (y.sum() + 1) / (len(y) + 2))
    strength = 1.0
    if few > 1:
        folds = min(5, few)

        def likelihood(c: float) -> float:
            model = LogisticRegression(C=c, max_iter=2000)
            p = cross_val_predict(model, x, y, cv=folds, method="predict_proba")[:, 1]
            return float(np.log(np.clip(np.where(y, p, 1 - p), 1e-6, 1)).mean())

        strength = max(STRENGTHS, key=likelihood)
    model = LogisticRegression(C=strength, max_iter=2000).fit(x, y)
    return model.predict_proba(x_test)[:, 1]


def _measure(task: Task, learner: MultiLearner | None, probs: NDArray | None) -> dict[str, float]:
    if learner is not None:
        probs = learner.predict_proba(task.x_test)
    assert probs is not None
    y, said, more = task.y_test, probs > 0.5, probs > LOWER
    p = np.clip(np.where(y, probs, 1 - probs), 1e-6, 1)
    return {
        "macro_f1": float(f1_score(y, said, average="macro", zero_division=0)),
        "map": float(average_precision_score(y, probs, average="macro")),
        "exact": float((said == y).all(1).mean()),
        "lower_macro_f1": float(f1_score(y, more, average="macro", zero_division=0)),
        "lower_exact": float((more == y).all(1).mean()),
        "nll": float(-np.log(p).mean()),
    }


def write_report(results: Results, path: Path) -> None:
    """A table for each half: means over seeds, in percent."""
    lines = ["# Several classes for an image or text", ""]
    lines += [*(__doc__ or "").splitlines()[2:7], ""]
    commits = ", ".join(sorted({line["commit"] for line in results.lines}))
    lines += [
        f"`python -m benchmarks.multi --half HALF`, seeds from 0, commit {commits}. Pool {POOL:,}, "
        f"test {TEST:,}; EfficientNet-Lite0 at 128 px, TF-IDF with 128 components. Fits after "
        f"{', '.join(map(str, ANSWERS))} answers: questions are chosen in larger batches than on "
        "the page, which fits after every ten. Classes above a probability of one half are "
        "predicted; *all right* is the share of points with just the right set. Means over seeds "
        "(their number in brackets), in percent; s: seconds of one core for the last fit.",
        "",
    ]
    for half, sets in SETS.items():
        lines += [f"## The half to {half}{'' if half == 'develop' else ' on'}", ""]
        if half == "develop":
            text = (
                "Chosen here: 128 features, their units (the direction from the mean, or each its "
                "own), the mean over classes rather than the maximum, and to learn from the pool."
            )
            lines += [text, ""]
        lines += _table(results, list(sets))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def _table(results: Results, sets: list[str]) -> list[str]:
    names = ("macro_f1", "map", "exact")
    heads = [f"{n} {k}" for k in ("macro-F1", "mAP", "all right") for n in REPORTED]
    lines = [f"| set | contender | {' | '.join(heads)} | s |", "|" + "---|" * (len(heads) + 3)]
    for name, contender in product(sets, (*SPINAL, LOGISTIC)):
        own = [r for r in results.lines if (r["set"], r["contender"]) == (name, contender)]
        if not own:
            continue
        cells = [
            f"{100 * np.mean([r[key] for r in own if r['answers'] == n]):.1f}"
            for key in names for n in REPORTED
        ]  # fmt: skip
        seconds = np.mean([r["seconds"] for r in own if r["answers"] == REPORTED[-1]])
        seeds = len({r["seed"] for r in own})
        lines.append(f"| {name} | {contender} ({seeds}) | {' | '.join(cells)} | {seconds:.1f} |")
    return [*lines, ""]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["develop", "report"], default="develop")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="+", help="all of the half, if left out")
    parser.add_argument("--contenders", nargs="+", default=[*SPINAL, LOGISTIC])
    parser.add_argument("--cache", type=Path, default=Path("multi-cache"))
    parser.add_argument("--out", type=Path, default=Path("results/multi"))
    parser.add_argument("--report", type=Path, help="only write the report, to this file")
    arguments = parser.parse_args()
    keys = ("set", "contender", "seed", "answers")
    results = Results(arguments.out / "results.jsonl", keys)
    if arguments.report:
        return write_report(results, arguments.report)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="sklearn")
    sets, version = SETS[arguments.half], commit("benchmarks/multi.py", "spinal")
    names = arguments.sets or list(sets)
    for seed, name, contender in product(arguments.seeds, names, arguments.contenders):
        line = {"set": name, "contender": contender, "seed": seed}
        if {**line, "answers": ANSWERS[-1]} in results:
            continue
        with threadpool_limits(1):
            task = make_task(name, sets[name], arguments.cache)
            found = run(task, contender, seed)
        results.add({**line, "commit": version, **each} for each in found)
        print(line, {k: round(found[-1][k], 3) for k in ("macro_f1", "map")}, flush=True)
    return None


if __name__ == "__main__":
    main()
