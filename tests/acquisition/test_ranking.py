"""Choosing by scores: the highest, or in proportion."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import scipy.stats
import torch

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.ranking import Ranked, top


def given(scores: list[float]) -> tuple[Candidates, torch.Tensor]:
    """Candidates that a made-up score will rank."""
    return Candidates(torch.zeros(len(scores), 1, 1)), torch.tensor(scores).double()


def test_the_highest_scores_come_first():
    generator = torch.Generator().manual_seed(0)
    assert top(torch.tensor([0.1, 0.9, 0.5, 0.7]), 3, generator).tolist() == [1, 3, 2]


def test_ties_leave_no_one_out():
    generator, counts = torch.Generator().manual_seed(0), Counter()
    for _ in range(3000):
        counts.update(top(torch.tensor([1.0, 0.0, 1.0, 1.0]), 2, generator).tolist())
    assert counts[1] == 0
    assert scipy.stats.chisquare([counts[i] for i in (0, 2, 3)]).pvalue > 1e-3


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_power_draws_without_replacement_in_proportion(power):
    candidates, scores = given([0.1, 0.2, 0.3, 0.4])
    acquisition = Ranked(lambda _: scores, power=power)
    generator = torch.Generator().manual_seed(0)
    draws = 4000
    counts = Counter(
        tuple(acquisition.select(candidates, 2, generator).tolist()) for _ in range(draws)
    )
    weight = (scores**power).tolist()
    pairs = list(itertools.permutations(range(4), 2))
    expected = [weight[i] / sum(weight) * weight[j] / (sum(weight) - weight[i]) for i, j in pairs]
    result = scipy.stats.chisquare([counts[pair] for pair in pairs], [draws * p for p in expected])
    assert result.pvalue > 1e-3


def test_power_takes_points_without_a_score_last_and_by_chance():
    candidates, scores = given([0.0, 0.5, 0.0, 0.0])
    acquisition = Ranked(lambda _: scores, power=1.0)
    generator = torch.Generator().manual_seed(0)
    batches = [acquisition.select(candidates, 2, generator).tolist() for _ in range(100)]
    assert {first for first, _ in batches} == {1}
    assert {second for _, second in batches} == {0, 2, 3}


def test_a_great_power_is_the_plain_ranking():
    log_probs = torch.randn(100, 5, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    plain, great = make_acquisition("bald"), make_acquisition("power-bald", power=1e6)
    batches = [
        acquisition.select(Candidates(log_probs), 10, torch.Generator().manual_seed(0)).tolist()
        for acquisition in (plain, great)
    ]
    assert batches[0] == batches[1]


@pytest.mark.parametrize("power", [-1.0, float("nan"), float("inf")])
def test_a_power_that_is_none_is_refused(power):
    with pytest.raises(AcquisitionError, match="power"):
        make_acquisition("bald", power=power)
