"""MC Dropout by modAL."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from acquisition_lenet import LeNet, inputs
from modAL.dropout import mc_dropout_bald
from modAL.models import DeepActiveLearner
from skorch import NeuralNetClassifier

VERSIONS = {"torch": torch.__version__, "modAL": version("modAL-python")}

#: Points in a pass.
BATCH = 256

torch.set_num_threads(1)


def mc_dropout(n: int, k: int) -> Callable[[], dict[str, Any]]:
    """BALD scores; images already floats, in memory.

    It takes the softmax over all points of a pass together. Given log-probabilities, that divides
    them, and so the scores, by the number of points in the pass, which is put right here.
    """
    learner, pool = DeepActiveLearner(NeuralNetClassifier(LeNet), mc_dropout_bald), inputs(n)
    points = np.concatenate([np.full(len(part), len(part)) for part in pool.split(BATCH)])

    def run() -> dict[str, Any]:
        torch.manual_seed(0)
        order, ranked = mc_dropout_bald(
            learner, pool, n, num_cycles=k, sample_per_forward_pass=BATCH,
            logits_adaptor=lambda logits, _: logits.log_softmax(-1),
        )  # fmt: skip
        scores = np.empty(n)
        scores[order] = ranked
        return {"bald": (scores * points).tolist()}

    return run
