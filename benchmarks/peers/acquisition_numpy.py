"""Herding as it is defined: the whole kernel, every candidate at every step. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import acquisition_data as data
import numpy as np

VERSIONS = {"numpy": np.__version__}


def herding(n: int, d: int, b: int, sample: int) -> Callable[[], dict[str, Any]]:
    """Max-herding of a pool that is to be covered whole: ``sample`` is not less than ``n``."""
    assert sample >= n, "the reference covers the whole pool"
    features = data.vectors(n, d)

    def run() -> dict[str, Any]:
        unit = features - features.mean(0)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        squared = np.maximum(2 - 2 * unit @ unit.T, 0)
        np.fill_diagonal(squared, 0)
        share = max(n // b, 1)
        radius = np.quantile(np.partition(squared, share, 1)[:, share], 0.5, method="lower")
        kernel = np.exp(-squared / radius)
        covered, picks = np.zeros(n, np.float32), []
        for _ in range(b):
            picks.append(int(np.maximum(kernel - covered, 0).mean(1).argmax()))
            covered = np.maximum(covered, kernel[picks[-1]])
        return {"picks": picks}

    return run
