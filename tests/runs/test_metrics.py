"""Metrics against hand-computed values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spinal.runs.metrics import calibration_error, evaluate, pack, reliability, unpack


def test_right_and_wrong_survive_as_text() -> None:
    right = np.random.default_rng(0).random(77) < 0.5
    assert unpack(pack(right), 77).tolist() == right.tolist()


def test_metrics_against_hand_computed_values() -> None:
    probs = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]])
    labels = np.array([0, 1, 1, 1])
    found = evaluate(np.log(probs), labels)
    assert found["accuracy"] == 0.75
    assert found["nll"] == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.55]).mean())
    assert calibration_error(reliability(probs, labels, bins=2)) == pytest.approx(abs(3 - 2.85) / 4)
    # Bins of a fifteenth: each point is alone in its own.
    assert found["ece"] == pytest.approx((0.1 + 0.6 + 0.2 + 0.45) / 4)
    assert sum(found["reliability"]["right"]) == 3
    assert json.dumps(found)
