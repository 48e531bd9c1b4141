"""Pools for the comparison of acquisition functions, drawn from a seed; needs numpy alone."""

from __future__ import annotations

import numpy as np


def log_probs(n: int, k: int, c: int, doubt: float, seed: int = 0) -> np.ndarray:
    """``log_probs_N_K_C`` in float32 of K linear classifiers that differ by ``doubt``.

    Points differ in how far they are from all boundaries. With ``doubt = 0.3`` the most informative
    of 10,000 points tells about 0.5 nats, as is common with MC Dropout; with 1, samples disagree
    about so much that a few labels tell them all apart.
    """
    random = np.random.RandomState(seed)
    points = random.standard_normal((n, 20)) * 2 * random.uniform(size=(n, 1))
    weights = 3 * random.standard_normal((1, 20, c))
    weights = weights + doubt * random.standard_normal((k, 20, c))
    log_odds = np.einsum("nd,kdc->nkc", points, weights, optimize=True).astype(np.float32)
    log_odds *= 2 / 20**0.5
    log_odds -= log_odds.max(-1, keepdims=True)
    log_odds -= np.log(np.exp(log_odds).sum(-1, keepdims=True))
    return log_odds


def vectors(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Features, or projected log-likelihoods: float32, with something in common."""
    random = np.random.RandomState(seed)
    return (random.standard_normal((n, d)) + random.standard_normal(d)).astype(np.float32)


def images(n: int, seed: int = 0) -> np.ndarray:
    """Noise of different strengths, uint8 ``[N, 28, 28, 1]``: the fainter, the less sure."""
    random = np.random.RandomState(seed)
    strength = random.uniform(size=(n, 1, 1, 1)).astype(np.float32)
    return (255 * strength * random.uniform(size=(n, 28, 28, 1)).astype(np.float32)).astype("uint8")


def weights(shapes: list[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
    """Weights of a network with ReLUs, and small biases."""
    random = np.random.RandomState(seed)
    drawn = []
    for shape in shapes:
        fan_in = np.prod(shape[1:]) if len(shape) > 1 else 400.0
        drawn.append((random.standard_normal(shape) * (2 / fan_in) ** 0.5).astype(np.float32))
    return drawn
