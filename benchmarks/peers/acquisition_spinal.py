"""The acquisition functions of spinal. Each function makes a case, and gives what runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import acquisition_data as data
import numpy as np
import torch
from acquisition_lenet import fill as fill_weights

from spinal.acquisition import Candidates, make_acquisition
from spinal.acquisition.batchbald import batchbald as batchbald_with_gains
from spinal.acquisition.frank_wolfe import fill
from spinal.acquisition.scores import bald
from spinal.data import as_points
from spinal.networks import build_network
from spinal.posteriors import MCDropout, View

VERSIONS = {"torch": torch.__version__}
Run = Callable[[], dict[str, Any]]

torch.set_num_threads(1)


def batchbald(n: int, k: int, c: int, b: int, labellings: int, doubt: float) -> Run:
    """BatchBALD; scores are those of the batch as it grows."""
    log_probs = torch.from_numpy(data.log_probs(n, k, c, doubt))

    def run() -> dict[str, Any]:
        generator = torch.Generator().manual_seed(0)
        picks, gains = batchbald_with_gains(log_probs, b, generator, labellings)
        return {"picks": picks.tolist(), "scores": gains.cumsum(0).tolist()}

    return run


def frank_wolfe(n: int, j: int, b: int) -> Run:
    """ACS-FW on projections, the batch filled."""
    vectors = torch.from_numpy(data.vectors(n, j))

    def run() -> dict[str, Any]:
        return {"picks": fill(vectors, b, torch.Generator().manual_seed(0)).tolist()}

    return run


def matvec(n: int, j: int, b: int) -> Run:
    """The floor of ACS-FW: one matrix-vector product for each point."""
    vectors, residual = torch.from_numpy(data.vectors(n, j)), torch.randn(j)

    def run() -> dict[str, Any]:
        for _ in range(b):
            vectors @ residual
        return {}

    return run


def mc_dropout(n: int, k: int) -> Run:
    """BALD scores of images as they are stored."""
    network = build_network("lenet", (28, 28, 1), 10).eval()
    fill_weights(network)
    network.preprocess.set([0.0], [1.0])
    view = View(network, as_points(data.images(n)), np.arange(n), torch.empty(n, 0))
    posterior = MCDropout(k)

    def run() -> dict[str, Any]:
        return {"bald": bald(posterior.sample(view, seed=0)).tolist()}

    return run


def k_center(n: int, d: int, b: int) -> Run:
    """k-center greedy, the first point being labelled."""
    features = torch.from_numpy(data.vectors(n + 1, d))
    return _select("k-center", b, features=features[1:], labelled_features=features[:1])


def badge(n: int, d: int, c: int, b: int) -> Run:
    """BADGE."""
    log_probs = torch.from_numpy(data.log_probs(n, 1, c, 0.3))
    return _select("badge", b, log_probs=log_probs, features=torch.from_numpy(data.vectors(n, d)))


def herding(n: int, d: int, b: int, sample: int) -> Run:
    """Max-herding from no labelled point."""
    features = torch.from_numpy(data.vectors(n, d))
    settings = {"sample": sample}
    return _select("max-herding", b, settings, features=features, labelled_features=features[:0])


def uncertainty_herding(n: int, d: int, c: int, b: int) -> Run:
    """Uncertainty herding from 100 labelled points."""
    return _select("uncertainty-herding", b, **_labelled(n, 1, d, c))


def bait(n: int, d: int, c: int, b: int) -> Run:
    """BAIT from 100 labelled points."""
    return _select("bait", b, **_labelled(n, 1, d, c))


def drop_query(n: int, k: int, d: int, c: int, b: int) -> Run:
    """DropQuery from 100 labelled points."""
    return _select("drop-query", b, **_labelled(n, k, d, c))


def _labelled(n: int, k: int, d: int, c: int) -> dict[str, torch.Tensor]:
    """A pool of n points, and 100 labelled ones."""
    features = torch.from_numpy(data.vectors(n + 100, d))
    log_probs = torch.from_numpy(data.log_probs(n + 100, k, c, 0.3))
    return {
        "log_probs": log_probs[100:], "labelled_log_probs": log_probs[:100],
        "features": features[100:], "labelled_features": features[:100],
    }  # fmt: skip


def _select(
    name: str, b: int, settings: dict[str, Any] | None = None, **arrays: torch.Tensor
) -> Run:
    candidates, acquisition = Candidates(**arrays), make_acquisition(name, **(settings or {}))

    def run() -> dict[str, Any]:
        picks = acquisition.select(candidates, b, torch.Generator().manual_seed(0))
        return {"picks": picks.tolist()}

    return run
