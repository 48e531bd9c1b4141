"""Seeds derived from the seed of a learner: one for each purpose in each round."""

from __future__ import annotations

from enum import IntEnum

from spinal.networks.network import derived_seed


class Purpose(IntEnum):
    """The purposes of random numbers."""

    NETWORK = 0
    POSTERIOR = 1
    SAMPLES = 2
    CHOICE = 3
    POOL = 4
    ADVICE = 5


def fit_seed(seed: int, rounds: int) -> int:
    """The seed of the fit after ``rounds`` fits."""
    return derived_seed(seed, 1000 + rounds)


def round_seed(seed: int, rounds: int, purpose: Purpose) -> int:
    """The seed for one purpose after ``rounds`` fits."""
    return derived_seed(fit_seed(seed, rounds), purpose)
