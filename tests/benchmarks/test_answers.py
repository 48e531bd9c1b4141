"""Summaries of the benchmark of answers."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.answers_report import against_rival, area, labels_saved


def test_the_area_is_the_mean_of_the_curve_over_the_answers() -> None:
    # From 20 to 100 it rises from 50 to 90, then it stays: (70 * 80 + 90 * 200) / 280.
    curve = pd.Series({10: 0.0, 20: 50.0, 100: 90.0, 300: 90.0, 500: 99.0})
    assert area(curve) == pytest.approx((70 * 80 + 90 * 200) / 280)


def test_labels_saved_are_read_off_the_rising_reference() -> None:
    reference = pd.Series({50: 60.0, 100: 70.0, 200: 65.0, 400: 80.0})
    curve = pd.Series({50: 75.0, 100: 60.0, 200: 90.0})
    assert labels_saved(curve, reference, 50) == pytest.approx(300 / 50)  # half-way 200 to 400
    assert labels_saved(curve, reference, 100) == pytest.approx(50 / 100)
    assert labels_saved(curve, reference, 200) == pytest.approx(400 / 200)  # never reached
    assert pd.isna(labels_saved(curve, reference, 300))


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ((1.0, 3.0), "+2.00 ± 1.00, ahead"),
        ((-1.0, 2.0), "+0.50 ± 1.50, level"),
        ((-4.0, -2.0), "-3.00 ± 1.00, behind"),
        ((1.0,), ""),
    ],
)
def test_two_curves_are_level_within_a_standard_error(gains: tuple, verdict: str) -> None:
    lines = [
        {"contender": contender, "seed": seed, "answers": n, "accuracy": 0.5 + seed + more / 100}
        for seed, gain in enumerate(gains)
        for contender, more in (("spinal", gain), ("margin", 0.0))
        for n in (20, 300)
    ]
    assert against_rival(pd.DataFrame(lines)) == verdict
