"""Auto: what it is made of at its ends, and how much of it is chance."""

from __future__ import annotations

import pytest
import scipy.stats
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)


def case(labelled: int, n: int = 80) -> Candidates:
    log_probs = (3 * draw(n, 3, seed=2)).log_softmax(-1)[:, None]
    return Candidates(log_probs, draw(n, 4), draw(labelled, 4, seed=1))


def picks(given: Candidates, b: int, seed: int = 0, **settings: float) -> list[int]:
    return make_acquisition("auto", **settings).select(given, b, seeded(seed)).tolist()


def other(name: str, given: Candidates, b: int) -> list[int]:
    return make_acquisition(name).select(given, b, seeded()).tolist()


def test_without_labels_it_covers():
    assert picks(case(0), 9, chance=0.0) == other("max-herding", case(0), 9)


def test_with_equal_doubt_it_covers():
    uniform = torch.full((80, 1, 3), 1 / 3).double().log()
    given = Candidates(uniform, case(0).features, case(30).labelled_features)
    assert picks(given, 9, chance=0.0) == other("max-herding", given, 9)


def test_with_many_labels_it_covers_the_doubt():
    given = case(60_000)
    assert picks(given, 9, chance=0.0) == other("uncertainty-herding", given, 9)
    assert picks(given, 9, chance=0.0) != other("max-herding", given, 9)


def test_the_share_of_chance_is_as_large_as_it_says():
    given = case(10)
    greedy = set(picks(given, 8, chance=0.0))
    by_chance = [len(set(picks(given, 8, seed, chance=1.0)) & greedy) for seed in range(200)]
    # As many as 8 draws of 80, without replacement, have of 8 given ones.
    assert sum(by_chance) / 200 == pytest.approx(0.8, abs=4 * (0.8 * 0.9 * 72 / 79 / 200) ** 0.5)
    first = [picks(given, 1, seed, chance=0.3)[0] for seed in range(300)]
    usual = picks(given, 1, chance=0.0)[0]
    expected = 0.7 + 0.3 / 80
    count = sum(pick == usual for pick in first)
    assert scipy.stats.binomtest(count, 300, expected).pvalue > 1e-3


def test_what_is_drawn_by_chance_is_covered_too():
    group = torch.arange(100) % 2
    z = 10 * torch.eye(2).double()[group] + 0.1 * draw(100, 2)
    uniform = torch.full((100, 1, 2), 0.5).double().log()
    given = Candidates(uniform, z, z[:0])
    for seed in range(20):
        chosen = picks(given, 2, seed, chance=0.5)
        drawn_both = picks(given, 2, seed, chance=1.0) == chosen
        assert drawn_both or len(set(group[chosen].tolist())) == 2


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_a_chance_that_is_no_probability_is_refused(chance):
    with pytest.raises(AcquisitionError, match="from 0 to 1"):
        make_acquisition("auto", chance=chance)
