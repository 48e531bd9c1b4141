"""BatchBALD by batchbald_redux."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import acquisition_data as data
import torch
from batchbald_redux.batchbald import get_batchbald_batch

VERSIONS = {"torch": torch.__version__, "batchbald_redux": version("batchbald_redux")}

torch.set_num_threads(1)


def batchbald(
    n: int, k: int, c: int, b: int, labellings: int, doubt: float
) -> Callable[[], dict[str, Any]]:
    """In float64, as its documentation has it."""
    log_probs = torch.from_numpy(data.log_probs(n, k, c, doubt))

    def run() -> dict[str, Any]:
        torch.manual_seed(0)
        batch = get_batchbald_batch(log_probs, b, labellings, dtype=torch.double, device="cpu")
        return {"picks": batch.indices, "scores": batch.scores}

    return run
