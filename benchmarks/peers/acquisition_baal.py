"""BatchBALD by baal: timed only, as it leaves out the first pick and mixes scores."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import acquisition_data as data
import numpy as np
import torch
from baal.active.heuristics import BatchBALD

VERSIONS = {"torch": torch.__version__, "baal": version("baal")}

torch.set_num_threads(1)


def batchbald(
    n: int, k: int, c: int, b: int, labellings: int, doubt: float
) -> Callable[[], dict[str, Any]]:
    """Its draws are for each posterior sample."""
    probs_N_C_K = np.exp(data.log_probs(n, k, c, doubt).astype(np.float64)).swapaxes(1, 2)

    def run() -> dict[str, Any]:
        torch.manual_seed(0)
        heuristic = BatchBALD(num_samples=b, num_draw=labellings // k)
        heuristic.get_ranks(probs_N_C_K)
        return {}

    return run
