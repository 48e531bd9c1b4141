"""BatchBALD by scikit-activeml."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import acquisition_data as data
import numpy as np
from skactiveml.pool import batch_bald

VERSIONS = {"scikit-activeml": version("scikit-activeml")}


def batchbald(
    n: int, k: int, c: int, b: int, labellings: int, doubt: float
) -> Callable[[], dict[str, Any]]:
    """The function beneath its query strategy."""
    probs_K_N_C = np.exp(data.log_probs(n, k, c, doubt).astype(np.float64)).swapaxes(0, 1)

    def run() -> dict[str, Any]:
        utilities = batch_bald(probs_K_N_C.copy(), b, labellings, random_state=0)
        picks = np.nanargmax(utilities, 1)
        return {"picks": picks.tolist(), "scores": np.nanmax(utilities, 1).tolist()}

    return run
