"""Tests and intervals against scipy, closed forms and hand-computed values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spinal.report.accuracy_tests import _printed, agreement
from spinal.report.experiment import Experiment
from spinal.report.families import add_holm, stars
from spinal.report.paper import p_values
from spinal.report.read import StoredRun
from spinal.report.savings import first_reached, stays_above
from spinal.report.statistics import (
    Outcomes,
    beats,
    holm,
    mcnemar_test,
    paired_t_test,
    t_interval,
    two_proportion_z_test,
    z_test,
)

N = 1000


def outcomes(accuracy: float, seed: int, indices: np.ndarray | None = None) -> Outcomes:
    right = np.random.default_rng(seed).random(N) < accuracy
    return Outcomes(np.arange(N) if indices is None else indices, right)


def z_by_hand(differences: np.ndarray) -> float:
    z = differences.mean() * np.sqrt(len(differences)) / differences.std()
    return float(stats.norm.sf(z))


def test_z_test_of_one_seed_is_the_paired_one() -> None:
    a, b = outcomes(0.8, 0), outcomes(0.75, 1)
    assert z_test([(a, b)]) == pytest.approx(z_by_hand(a.right.astype(float) - b.right))
    assert z_test([(a, b)]) + z_test([(b, a)]) == pytest.approx(1)


def test_the_mean_row_averages_each_point_over_seeds() -> None:
    pairs = [(outcomes(0.8, 2 * s), outcomes(0.75, 2 * s + 1)) for s in range(3)]
    mean = np.mean([a.right.astype(float) - b.right for a, b in pairs], axis=0)
    assert z_test(pairs) == pytest.approx(z_by_hand(mean))


def test_the_same_point_twice_is_no_new_evidence() -> None:
    a, b = outcomes(0.8, 0), outcomes(0.75, 1)
    assert z_test([(a, b)] * 5) == pytest.approx(z_test([(a, b)]))
    elsewhere = np.arange(N, 2 * N)
    others = Outcomes(elsewhere, a.right), Outcomes(elsewhere, b.right)
    assert z_test([(a, b), others]) < z_test([(a, b)])


def test_classifiers_that_agree_are_not_told_apart() -> None:
    a = outcomes(0.8, 0)
    assert z_test([(a, a)]) == 0.5
    assert mcnemar_test(a, a) == 1


def test_mcnemar_is_a_sign_test_of_the_points_that_differ() -> None:
    a, b = outcomes(0.8, 0), outcomes(0.75, 1)
    only_a, differ = int((a.right & ~b.right).sum()), int((a.right ^ b.right).sum())
    assert mcnemar_test(a, b) == pytest.approx(stats.binomtest(only_a, differ).pvalue)


def test_holm_leaves_out_what_is_not_known() -> None:
    assert holm([0.01, 0.04, np.nan, 0.03]) == pytest.approx(
        [0.03, 0.06, np.nan, 0.06], nan_ok=True
    )


def test_the_interval_is_student_s() -> None:
    values = np.random.default_rng(0).normal(1, 2, 7)
    expected = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    assert t_interval(values) == pytest.approx(expected)
    assert np.isnan(t_interval(values[:2])).all()
    assert np.isfinite(t_interval(values[:3])).all()


def test_beating_agrees_with_student_s_test() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        differences = rng.normal(0.5, 0.6, 5)
        significant = paired_t_test(differences) < 0.05 and differences.mean() > 0
        assert beats(differences) == significant
        seen.add(significant)
    assert seen == {True, False}
    assert not beats(np.array([0.3]))
    assert np.isnan(paired_t_test(np.array([0.3, 0.31])))


def test_two_proportions_by_hand_and_by_a_table() -> None:
    z = 0.02 / np.sqrt((0.8 * 0.2 + 0.78 * 0.22) / 10_000)
    assert two_proportion_z_test(0.8, 0.78, 10_000) == pytest.approx(stats.norm.sf(z))
    assert two_proportion_z_test(0.8, 0.8, 100) == 0.5
    assert [two_proportion_z_test(a, 1 - a, 100) for a in (1.0, 0.0)] == [0.0, 1.0]
    # On independent samples it is the paired test of shuffled points, nearly.
    a, b = outcomes(0.8, 0), outcomes(0.75, 1)
    alone = two_proportion_z_test(a.right.mean(), b.right.mean(), N)
    assert alone == pytest.approx(z_test([(a, b)]), abs=0.01)


def test_the_paper_s_own_tests_follow_from_its_accuracies() -> None:
    printed = [
        agreement(pd.DataFrame(_printed(Experiment(name, [stored(name)], []))))
        for name in p_values()["table"].unique()
    ]
    matches = pd.concat(printed)
    assert (matches.sum(), len(matches)) == (143, 180)


def stored(table: str) -> StoredRun:
    settings = {"protocol": {"paper": table}}
    return StoredRun("p", "random", 0, Path(), [], settings)


def test_corrections_within_a_comparison_and_over_the_table() -> None:
    p = [0.01, 0.03, 0.02, 0.5]
    data = pd.DataFrame({"method": "a", "competitor": ["b", "b", "c", "c"], "p_value": p})
    add_holm(data, [])
    assert data["holm"].tolist() == pytest.approx([0.02, 0.03, 0.04, 0.5])
    assert data["holm_all"].tolist() == pytest.approx([0.04, 0.06, 0.06, 0.5])
    marks = [stars(*pair) for pair in zip(data["holm"], data["holm_all"], strict=True)]
    assert marks == [" **", " *", " *", ""]


def test_labels_count_from_where_a_curve_stays_above() -> None:
    curve = pd.Series([0.5, 0.7, 0.6, 0.8], [10, 20, 30, 40])
    assert first_reached(curve, 0.65) == pytest.approx(17.5)
    assert stays_above(curve, 0.65) == pytest.approx(32.5)
    assert first_reached(curve, 0.55) == stays_above(curve, 0.55) == pytest.approx(12.5)
    assert first_reached(curve, 0.5) == stays_above(curve, 0.5) == 10
    assert np.isnan([first_reached(curve, 0.9), stays_above(curve, 0.9)]).all()
    assert np.isnan(stays_above(curve.iloc[:3], 0.65))
    assert first_reached(curve.iloc[:3], 0.65) == pytest.approx(17.5)
