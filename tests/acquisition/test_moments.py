"""BALD from moments, and scores weighted by density."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import spearmanr

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.scores import bald, max_entropy
from spinal.acquisition.variance import bald_from_moments


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(spread: float, n: int = 200, k: int = 400) -> torch.Tensor:
    logits = torch.randn(n, 1, 5, generator=seeded(), dtype=torch.float64)
    noise = torch.randn(n, k, 5, generator=seeded(1), dtype=torch.float64)
    wide = torch.rand(n, 1, 1, generator=seeded(2), dtype=torch.float64)
    return (logits + spread * wide * noise).log_softmax(2)


def moments(log_probs: torch.Tensor) -> torch.Tensor:
    probs = log_probs.exp()
    return torch.stack([probs.mean(1), probs.var(1, correction=0)], 1)


def test_moments_give_bald_where_the_spread_is_small():
    log_probs = samples(0.1)
    torch.testing.assert_close(
        bald_from_moments(moments(log_probs)), bald(log_probs), rtol=0.02, atol=1e-7
    )


def test_moments_rank_as_bald_where_it_is_not():
    log_probs = samples(1.5)
    assert spearmanr(bald_from_moments(moments(log_probs)), bald(log_probs)).statistic > 0.98


def test_the_size_of_variances_does_not_matter():
    known = moments(samples(1.0))
    smaller = known * torch.tensor([1.0, 0.01], dtype=torch.float64).view(1, 2, 1)
    for name in ("variance-bald", "power-variance-bald"):
        batches = [
            make_acquisition(name).select(Candidates(moments=m), 20, seeded())
            for m in (known, smaller)
        ]
        assert torch.equal(*batches)


def test_density_weighs_the_entropy_by_its_rank():
    log_probs = samples(0.5)
    log_density = 300 * torch.randn(200, generator=seeded(3), dtype=torch.float64)
    rank = 1 + log_density.argsort().argsort()
    expected = (max_entropy(log_probs) * rank / 200).argsort(descending=True)[:15]
    given = Candidates(log_probs, log_density=log_density)
    chosen = make_acquisition("weighted-max-entropy").select(given, 15, seeded())
    assert torch.equal(chosen, expected)
    plain = make_acquisition("max-entropy").select(given, 15, seeded())
    assert not torch.equal(chosen, plain)
    off = make_acquisition("weighted-max-entropy", strength=0.0).select(given, 15, seeded())
    assert torch.equal(off, plain)
    with pytest.raises(AcquisitionError, match="from 0 up"):
        make_acquisition("weighted-max-entropy", strength=-1.0)
