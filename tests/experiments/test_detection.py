"""Measures of detection against counting."""

from __future__ import annotations

import numpy as np
import pytest

from spinal.experiments.detection import RATES, detection, histogram


@pytest.fixture
def scores() -> tuple[np.ndarray, np.ndarray]:
    """Of few distinct values, so that many are tied."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 12, 150) / 4.0, rng.integers(3, 16, 60) / 4.0


def test_auroc_counts_pairs(scores: tuple[np.ndarray, np.ndarray]) -> None:
    inside, outside = scores
    wins = sum((o > i) + 0.5 * (o == i) for o in outside for i in inside)
    assert detection(*scores)["auroc"] == pytest.approx(wins / (len(inside) * len(outside)))


def test_average_precision_with_either_as_positive(scores: tuple[np.ndarray, np.ndarray]) -> None:
    def average_precision(positive: np.ndarray, negative: np.ndarray) -> float:
        total, before = 0.0, 0.0
        for threshold in sorted({*positive, *negative}, reverse=True):
            hits, misses = (positive >= threshold).sum(), (negative >= threshold).sum()
            recall = hits / len(positive)
            total += (recall - before) * hits / (hits + misses)
            before = recall
        return total

    inside, outside = scores
    found = detection(inside, outside)
    assert found["aupr_outside"] == pytest.approx(average_precision(outside, inside))
    assert found["aupr_inside"] == pytest.approx(average_precision(-inside, -outside))
    assert found["aupr_outside"] != pytest.approx(found["aupr_inside"], abs=0.01)


def test_false_positives_at_95_percent(scores: tuple[np.ndarray, np.ndarray]) -> None:
    inside, outside = scores
    # The highest threshold at which 57 of the 60 points outside, or more, are called so.
    threshold = max(t for t in outside if (outside >= t).sum() >= 57)
    assert detection(inside, outside)["fpr95"] == pytest.approx((inside >= threshold).mean())


def test_roc_is_the_best_that_a_rate_allows(scores: tuple[np.ndarray, np.ndarray]) -> None:
    inside, outside = scores
    thresholds = [np.inf, *np.unique(np.concatenate(scores))]
    for rate, found in zip(RATES, detection(inside, outside)["roc"], strict=True):
        best = max((outside >= t).mean() for t in thresholds if (inside >= t).mean() <= rate)
        assert found == pytest.approx(best, abs=1e-4)


def test_a_score_that_knows_all_and_one_that_knows_nothing() -> None:
    perfect = detection(np.zeros(10), np.ones(30))
    assert (perfect["auroc"], perfect["fpr95"]) == (1, 0)
    assert (perfect["aupr_outside"], perfect["aupr_inside"]) == (1, 1)
    nothing = detection(np.zeros(10), np.zeros(30))
    assert (nothing["auroc"], nothing["fpr95"]) == (0.5, 1)
    assert (nothing["aupr_outside"], nothing["aupr_inside"]) == (0.75, 0.25)


def test_histogram_holds_every_entropy() -> None:
    highest = np.log(10)
    counts = histogram(np.array([0.0, 1e-9, highest / 2, highest + 1e-7]), n_classes=10, bins=4)
    assert counts == [2, 0, 1, 1]
