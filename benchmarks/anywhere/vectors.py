"""Vectors, for classifiers on features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_length(x: NDArray) -> NDArray:
    """Vectors ``[N, D]`` scaled to length 1."""
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def span(x: NDArray) -> NDArray:
    """An orthonormal basis ``[D, R]`` of the rows of ``x``, ``[N, D]``; the unit matrix if D <= N.

    A penalty on squared weights does not depend on the basis, and fewer columns are faster.
    """
    if x.shape[1] <= len(x):
        return np.eye(x.shape[1], dtype=x.dtype)
    return np.linalg.svd(x, full_matrices=False)[2].T
