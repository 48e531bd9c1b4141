"""Scores against loops over plain probabilities, and at the edges of floating point."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.acquisition import scores

ALL = [
    scores.max_entropy,
    scores.variation_ratio,
    scores.variation_ratio_votes,
    scores.margin,
    scores.bald,
    scores.mean_std,
]


def draw(*shape: int, seed: int = 0, spread: float = 2.0) -> Tensor:
    logits = spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()
    return logits.log_softmax(-1)


def plain_entropy(p: np.ndarray) -> float:
    return -sum(x * math.log(x) for x in p.tolist() if x > 0)


def by_hand(name: str, p_K_C: np.ndarray) -> float:
    mean = p_K_C.mean(0)
    ordered = sorted(mean.tolist(), reverse=True)
    votes = Counter(p_K_C.argmax(1).tolist())
    return {
        "max_entropy": plain_entropy(mean),
        "variation_ratio": 1 - ordered[0],
        "variation_ratio_votes": 1 - max(votes.values()) / len(p_K_C),
        "margin": 1 - (ordered[0] - ordered[1]),
        "bald": plain_entropy(mean) - sum(map(plain_entropy, p_K_C)) / len(p_K_C),
        "mean_std": float(np.mean(np.std(p_K_C, 0))),
    }[name]


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_scores_are_what_their_formulas_say(score, dtype, error):
    log_probs = draw(40, 7, 5).to(dtype)
    expected = [by_hand(score.__name__, p) for p in log_probs.double().exp().numpy()]
    got = score(log_probs)
    assert got.dtype == torch.float64
    np.testing.assert_allclose(got.numpy(), expected, atol=error)


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
def test_certain_predictions_score_zero_and_impossible_classes_do_no_harm(score):
    certain = torch.full((3, 4, 5), -torch.inf)
    certain[..., 1] = 0.0
    assert score(certain).tolist() == [0, 0, 0]


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
def test_no_score_is_negative_whatever_the_rounding(score):
    for seed, spread in [(0, 1e-6), (1, 1.0), (2, 100.0), (3, 1e4)]:
        assert score(draw(500, 3, 10, seed=seed, spread=spread).float()).min() >= 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_sample_tells_nothing_about_the_model(dtype):
    assert torch.equal(scores.bald(draw(200, 1, 10).to(dtype)), torch.zeros(200).double())


def test_entropy_is_in_nats_and_greatest_for_even_probabilities():
    even = torch.full((1, 3, 10), 0.1).log()
    assert scores.max_entropy(even).item() == pytest.approx(math.log(10), abs=1e-7)


def test_bald_ignores_noise_and_sees_disagreement():
    coin = torch.full((1, 2, 2), 0.5).log()
    disagreement = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]).log()
    assert scores.bald(coin).item() == pytest.approx(0, abs=1e-15)
    assert scores.bald(disagreement).item() == pytest.approx(math.log(2))


def test_pieces_of_the_pool_are_scored_like_the_whole(monkeypatch):
    from spinal.acquisition import candidates

    log_probs = draw(50, 3, 4)
    whole = [score(log_probs) for score in ALL]
    monkeypatch.setattr(candidates, "_CHUNK", 30)
    for score, expected in zip(ALL, whole, strict=True):
        torch.testing.assert_close(score(log_probs), expected)
