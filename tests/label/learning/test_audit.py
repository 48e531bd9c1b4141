"""The audit: the estimate by its formula, and how often its interval holds where all is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from spinal.label.learning.audit import audit_folds, estimate_accuracy


def test_estimate_and_interval_by_the_formula() -> None:
    right = np.array([1, 1, 0, 1, 0, 1], bool)
    confidence = np.array([0.9, 0.8, 0.5, 0.7, 0.6, 0.9])
    others = np.array([0.5, 0.6, 0.9, 1.0, 0.8, 0.7, 0.95, 0.65, 0.55, 0.85])
    everyone = [*confidence, *others]
    mean = sum(everyone) / 16
    spread = sum((f - mean) ** 2 for f in everyone) / 15
    # cov(c, f): c is 2/3 on average, f 4.4 / 6.
    products = sum((c - 4 / 6) * (f - 4.4 / 6) for c, f in zip(right, confidence, strict=True))
    weight = min(products / 5 / ((1 + 6 / 10) * spread), 1)
    assert 0 < weight <= 1
    rectified = [c - weight * f for c, f in zip(right, confidence, strict=True)]
    expected = sum(rectified) / 6 + weight * 7.5 / 10
    middle = sum(rectified) / 6
    residual = sum((r - middle) ** 2 for r in rectified) / 4
    variance = residual + weight**2 * 0.6 * spread
    answers = 4 * max((4 / 15 * 1.0) / variance, 1)  # var(c) = 6 * 2/3 * 1/3 / 5
    found = estimate_accuracy(right, confidence, others)
    assert found.value == pytest.approx(expected)
    # u, by the distribution of the sum of six draws from all 16, in hundredths.
    shares = np.bincount(np.rint(100 * np.array(everyone)).astype(int)) / 16
    sums = np.array([1.0])
    for _ in range(6):
        sums = np.convolve(sums, shares)
    u = sums[441:].sum() + sums[440] / 2
    limits = beta.ppf((0.025, 0.975), answers * expected + u, answers * (1 - expected) + 1 - u)
    assert (found.low, found.high) == pytest.approx(tuple(limits), abs=0.003)
    assert (found.audited, found.correct) == (6, 4)


def test_few_answers_that_are_all_right_leave_room_for_doubt() -> None:
    confidence, others = np.linspace(0.9, 0.99, 10), np.linspace(0.9, 0.99, 50)
    sure = estimate_accuracy(np.ones(10, bool), confidence, others)
    assert sure.value == 1
    assert sure.low < 0.8
    assert (sure.value, sure.high) == (1, 1)  # an estimate lies in its interval
    one = estimate_accuracy(np.ones(1, bool), np.array([0.9]), np.empty(0))
    assert one.high - one.low > 0.9


def test_if_all_is_right_although_the_audit_is_hard_little_doubt_is_left() -> None:
    hard = estimate_accuracy(np.ones(10, bool), np.full(10, 0.5), np.linspace(0.9, 1, 50))
    assert 0.99 < hard.low < 0.995


def test_without_confidences_it_is_the_interval_of_jeffreys() -> None:
    right = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1], bool)
    for others in (np.empty(0), np.full(20, 0.7)):
        found = estimate_accuracy(right, np.full(12, 0.7), others)
        limits = beta.ppf((0.025, 0.975), 10 * (10 / 12) + 0.5, 10 * (2 / 12) + 0.5)
        assert (found.low, found.high) == pytest.approx(tuple(limits))


def test_easy_images_in_the_audit_lower_the_interval() -> None:
    right, others = np.arange(10) < 7, np.linspace(0.4, 1, 61)
    intervals = [estimate_accuracy(right, np.full(10, f), others) for f in (0.5, 0.7, 0.9)]
    assert intervals[0].low > intervals[1].low > intervals[2].low
    assert intervals[0].high > intervals[1].high > intervals[2].high
    assert {found.value for found in intervals} == {0.7}  # equal confidences explain nothing


@pytest.mark.parametrize(("n", "accuracy"), [(10, 0.6), (10, 0.8), (15, 0.9), (30, 0.97)])
def test_the_interval_holds_for_calibrated_and_for_useless_confidences(
    n: int, accuracy: float
) -> None:
    """1,000 audits: a share of .95 has a standard error of .007."""
    random = np.random.default_rng(n)
    for calibrated in (True, False):
        holds = []
        for _ in range(1000):
            chances = random.beta(4 * accuracy, 4 * (1 - accuracy), 200)
            right = random.random(n) < chances[:n]
            said = chances if calibrated else random.permutation(chances)
            found = estimate_accuracy(right, said[:n], said[n:])
            holds.append(found.low <= accuracy <= found.high)
        assert 0.93 <= np.mean(holds) <= 0.98


def test_confidences_make_the_estimate_better() -> None:
    random = np.random.default_rng(0)
    errors, plain_errors = [], []
    for _ in range(500):
        chances = random.beta(1.4, 0.6, 500)
        right = random.random(30) < chances[:30]
        errors.append(estimate_accuracy(right, chances[:30], chances[30:]).value - 0.7)
        plain_errors.append(right.mean() - 0.7)
    assert np.std(errors) < 0.9 * np.std(plain_errors)
    assert abs(np.mean(errors)) < 0.02


def test_no_model_is_without_more_than_a_twentieth_of_the_answers() -> None:
    for labelled, audited, models in ((50, 10, 5), (100, 10, 2), (200, 10, 1), (300, 15, 1)):
        folds = audit_folds(audited, labelled)
        assert len(np.unique(folds)) == models
        assert np.bincount(folds).max() <= labelled / 20
    assert len(np.unique(audit_folds(3, 12))) == 3  # one each, if there are so few
