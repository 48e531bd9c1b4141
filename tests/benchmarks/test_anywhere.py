"""The parts of `benchmarks.anywhere` that its results depend on; without any data."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not installed

from benchmarks.anywhere import summary
from benchmarks.anywhere.cells import (
    Cell,
    CellName,
    class_weights,
    encode_table,
    long_tailed,
)
from benchmarks.anywhere.contenders import CONTENDERS, FOR_TABLES, _folds
from benchmarks.anywhere.metrics import BINS, measure
from benchmarks.anywhere.sets import read_suite


def test_suite_is_split_by_set() -> None:
    halves: dict[str, set[str]] = {}
    for line in read_suite():
        halves.setdefault(line.name, set()).add(line.half)
    assert all(len(half) == 1 for half in halves.values())
    assert {half for of_set in halves.values() for half in of_set} == {"develop", "report"}


@pytest.mark.parametrize("ratio", [10, 100])
def test_long_tail(ratio: int) -> None:
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(5), 1000))
    kept = long_tailed(labels, ratio)
    counts = np.sort(np.bincount(labels[kept]))[::-1]
    expected = [1000 * ratio ** (-i / 4) for i in range(5)]
    np.testing.assert_allclose(counts, expected, atol=0.5)
    assert len(set(kept)) == len(kept)


def test_long_tail_of_unequal_classes_keeps_the_ratio() -> None:
    labels = np.repeat(np.arange(3), [300, 1000, 2000])
    counts = np.bincount(labels[long_tailed(labels, 10)])
    assert counts.max() / counts.min() == pytest.approx(10, rel=0.02)


def test_weights_give_each_class_its_share() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    weights = class_weights(labels, np.array([0.1, 0.3, 0.6]))
    np.testing.assert_allclose(np.bincount(labels, weights) / weights.sum(), [0.1, 0.3, 0.6])
    assert weights.mean() == pytest.approx(1)


def test_metrics_against_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    weights = rng.uniform(0.1, 2, 200)
    values = measure(probs, labels, weights)
    predicted = probs.argmax(1)
    assert values["accuracy"] == pytest.approx(
        accuracy_score(labels, predicted, sample_weight=weights)
    )
    assert values["balanced"] == pytest.approx(balanced_accuracy_score(labels, predicted))
    assert values["nll"] == pytest.approx(log_loss(labels, probs, sample_weight=weights))
    squares = ((probs - np.eye(4)[labels]) ** 2).sum(1)
    assert values["brier"] == pytest.approx((weights * squares).sum() / weights.sum())
    expected = 0.0
    for low in np.arange(BINS) / BINS:
        inside = (probs.max(1) >= low) & (probs.max(1) < low + 1 / BINS)
        if inside.any():
            w = weights[inside]
            right = np.average(predicted[inside] == labels[inside], weights=w)
            confidence = np.average(probs.max(1)[inside], weights=w)
            expected += w.sum() / weights.sum() * abs(right - confidence)
    assert values["ece"] == pytest.approx(expected)


def test_weights_do_the_same_as_points_that_come_more_often() -> None:
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    times = 1 + (labels == 2) * 3
    weighted = measure(probs, labels, times.astype(float))
    repeated = measure(
        np.repeat(probs, times, 0), np.repeat(labels, times), np.ones(int(times.sum()))
    )
    assert weighted == pytest.approx(repeated)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="no probabilities"):
        measure(np.array([[0.5, np.nan]]), np.array([0]), np.ones(1))


def test_tables_are_encoded_by_the_pool() -> None:
    pool = np.array([[0, 1.0], [2, 3.0], [0, np.nan]])
    test = np.array([[2, np.nan], [1, 5.0]])
    x_pool, x_test = encode_table(pool, test, np.array([True, False]))
    np.testing.assert_array_equal(x_pool, [[1, 0, 1], [0, 1, 3], [1, 0, 2]])
    np.testing.assert_array_equal(x_test, [[0, 1, 2], [0, 0, 5]])  # a category unseen: none


def small_cell(n: int = 60, missing: bool = True) -> tuple[Cell, np.ndarray]:
    """Four classes around corners of a square; the last has no label, the third only one."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    x = np.stack([labels % 2, labels // 2], 1) * 4 + rng.normal(size=(400, 2))
    first = np.arange(300)
    if missing:
        chosen = np.concatenate([first[labels[:300] < 2][: n - 1], first[labels[:300] == 2][:1]])
    else:
        chosen = first[:n]
    cell = Cell(
        CellName("corners", 1, n, 0), "dense", x[:300].astype(np.float32), np.sort(chosen),
        labels[np.sort(chosen)], x[300:].astype(np.float32), 4, own_units=True,
    )  # fmt: skip
    return cell, labels[300:]


@pytest.mark.parametrize("name", [c for c in CONTENDERS if c != "spn"])
def test_contenders_survive_missing_classes(name: str) -> None:
    cell, truth = small_cell()
    probs = CONTENDERS[name](cell)
    measure(probs, truth, np.ones(len(truth)))
    assert (probs > 0).all()  # a class without labels is not ruled out


@pytest.mark.parametrize("name", ["logistic", "gda", "knn", *FOR_TABLES])
def test_contenders_recognise_plain_classes(name: str) -> None:
    cell, truth = small_cell(missing=False)
    values = measure(CONTENDERS[name](cell), truth, np.ones(len(truth)))
    assert values["accuracy"] > 0.85


def test_logistic_regression_is_that_of_scikit_learn_for_its_best_c() -> None:
    cell, _ = small_cell(n=40, missing=False)
    x, test = cell.features
    candidates = [
        LogisticRegression(C=c, max_iter=9999, tol=1e-6).fit(x, cell.labels).predict_proba(test)
        for c in np.logspace(-4, 3, 8)
    ]
    ours = CONTENDERS["logistic"](cell)
    assert min(np.abs(ours - probs).max() for probs in candidates) < 0.01


def test_folds_divide_each_class() -> None:
    labels = np.repeat([0, 1, 2], [50, 10, 1])
    folds = np.array(list(_folds(labels, seed=0)))
    assert (folds.sum(0) == 1).all()
    assert (folds[:, labels == 0].sum(1) == 10).all()
    assert (folds[:, labels == 1].sum(1) == 2).all()


def test_cells_compare_the_same_seeds(tmp_path: Path) -> None:
    lines = [
        {"set": "a", "tail": 1, "labels": 30, "half": "develop", "classes": 2, "commit": "c",
         "seed": seed, "contender": contender, **dict.fromkeys(summary.METRICS, seed / 10)}
        for contender, seeds in {"head": (0, 1, 2), "spn": (1, 2)}.items() for seed in seeds
    ]  # fmt: skip
    pd.DataFrame(lines).to_json(tmp_path / "results.jsonl", orient="records", lines=True)
    cells = summary.read_cells(tmp_path)
    assert list(cells["contender"]) == ["spn", "head"]
    assert list(cells["seeds"]) == ["1, 2", "1, 2"]
    np.testing.assert_allclose(cells["accuracy"], 0.15)


def test_summary_by_hand() -> None:
    lines = [
        ("a", 1, "head", 0.80, 0.6), ("a", 1, "logistic", 0.85, 0.5), ("a", 1, "spn", 0.84, 0.4),
        ("b", 10, "head", 0.50, 1.6), ("b", 10, "logistic", 0.40, 1.4), ("b", 10, "spn", 0.46, 1.5),
    ]  # fmt: skip
    cells = pd.DataFrame(lines, columns=["set", "tail", "contender", "accuracy", "nll"])
    cells = cells.assign(labels=30, balanced=cells["accuracy"], ece=0.1, seconds=1.0)
    table = summary.summarise(cells).set_index("contender")
    assert table.loc["spn", "mean regret"] == "2.50"
    assert table.loc["spn", "worst regret"] == "4.0"
    assert table.loc["spn", "worst gap to logistic"] == "-1.0"
    assert table.loc["head", "cells > 3 below logistic"] == 1
    assert table.loc["spn", "NLL below head's"] == "100 %"
    assert table.loc["spn", "NLL below logistic's"] == "50 %"
    assert table.loc["spn", "long-tailed: mean regret, balanced"] == "4.00"
