"""MC Dropout and BatchBALD by baal.

BatchBALD is timed only, as it leaves out the first pick and mixes scores.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import acquisition_data as data
import numpy as np
import torch
from acquisition_lenet import LeNet, inputs
from baal import ModelWrapper
from baal.active.heuristics import BALD, BatchBALD
from baal.bayesian.dropout import patch_module
from baal.modelwrapper import TrainingArgs
from scipy.special import softmax
from torch.utils.data import TensorDataset

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


def mc_dropout(n: int, k: int) -> Callable[[], dict[str, Any]]:
    """BALD scores; images already floats, in memory. Of its two ways, the one that is faster."""
    model = patch_module(LeNet(), inplace=False)
    arguments = TrainingArgs(batch_size=256, use_cuda=False, workers=0, replicate_in_memory=False)
    wrapper = ModelWrapper(model, arguments)
    pool = TensorDataset(inputs(n), torch.zeros(n))

    def run() -> dict[str, Any]:
        torch.manual_seed(0)
        logits_N_C_K = wrapper.predict_on_dataset(pool, iterations=k, verbose=False)
        return {"bald": BALD().compute_score(softmax(logits_N_C_K, 1)).tolist()}

    return run
