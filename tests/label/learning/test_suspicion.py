"""Suspect answers: their order, worked out by hand."""

from __future__ import annotations

import numpy as np

from spinal.label.learning.suspicion import suspect_answers


def test_lowest_self_confidence_for_the_class_comes_first() -> None:
    probs = np.array(
        [
            [0.9, 0.1, 0.0],
            [0.3, 0.7, 0.0],  # said to be 0, whose images usually have (.9 + .3) / 2 = .6: .5 of it
            [0.1, 0.2, 0.7],
            [0.2, 0.3, 0.5],
            [0.5, 0.2, 0.3],  # said to be 2, usually (.7 + .5 + .3) / 3 = .5: .6 of it
            [0.4, 0.4, 0.2],  # said to be 1, and nothing is more probable
        ]
    )
    rows, instead = suspect_answers(probs, np.array([0, 0, 2, 2, 2, 1]))
    assert rows.tolist() == [1, 4]
    assert instead.tolist() == [1, 0]


def test_a_hard_class_is_not_suspect_as_a_whole() -> None:
    """All of class 1 have a self-confidence of .3; one of class 0 has .35, where .9 is usual."""
    probs = np.array([[0.9, 0.1]] * 9 + [[0.35, 0.65]] + [[0.7, 0.3]] * 10)
    labels = np.array([0] * 10 + [1] * 10)
    assert suspect_answers(probs, labels)[0][0] == 9


def test_nothing_to_judge() -> None:
    rows, instead = suspect_answers(np.empty((0, 3)), np.empty(0, np.int64))
    assert len(rows) == len(instead) == 0
