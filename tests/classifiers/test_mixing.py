"""Comparisons by held-out points."""

import math

import pytest
import torch

from spinal.classifiers.mixing import held_out_gain


def test_the_gain_is_the_log_of_the_likelihood_ratio() -> None:
    labels = torch.tensor([0, 1])
    old = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()
    new = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    ratio = (0.9 / 0.5) * (0.8 / 0.5)
    assert held_out_gain(new, old, labels) == pytest.approx(math.log(ratio))
    assert held_out_gain(old, new, labels) == pytest.approx(-math.log(ratio))


def test_no_single_point_decides() -> None:
    labels = torch.zeros(21, dtype=torch.long)
    old = torch.full((21, 2), 0.5).log()
    new = torch.tensor([[0.99, 0.01]] * 20 + [[1e-30, 1.0]]).log()
    assert held_out_gain(new, old, labels) > 0
    assert held_out_gain(new[10:], old[10:], labels[10:]) < 0
