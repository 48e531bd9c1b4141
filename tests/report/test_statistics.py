"""Tests and intervals against scipy, closed forms and hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from spinal.report.statistics import (
    Outcomes,
    beats,
    holm,
    mcnemar_test,
    paired_t_test,
    t_interval,
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
    assert np.isnan(t_interval(values[:1])).all()


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
    assert np.isnan(paired_t_test(np.array([0.3])))
