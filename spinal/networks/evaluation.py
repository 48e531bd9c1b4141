"""Features and logits of points, in batches and without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.data.inputs import as_points
from spinal.data.points import Points
from spinal.networks.network import Network

#: Points per batch: enough for efficient matrix products, few enough for the CPU's caches.
BATCH = 128


@contextmanager
def evaluating(network: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, inside the ``with`` block."""
    training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(training)


def compute_features(
    network: Network,
    points: Points | NDArray,
    indices: NDArray[np.int64] | None = None,
    *,
    batch_size: int = BATCH,
    device: torch.device | str | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Tensor:
    """The feature vectors of points, float32 ``[N, F]``, on the CPU.

    Args:
        network: used in evaluation mode; its mode is restored afterwards.
        points: images, uint8 ``[M, H, W, C]``, or features ``[M, D]``, read in batches.
        indices: which points, in which order; None for all.
        batch_size: points per batch.
        device: the network is moved to this device first; if None, it stays where it is.
        on_batch: called with the number of points done and the total number of points.
    """
    points = as_points(points)
    chosen = np.arange(len(points)) if indices is None else np.asarray(indices, np.int64)
    if device is not None:
        network.to(device)
    parts = []
    with evaluating(network):
        for start in range(0, max(len(chosen), 1), batch_size):
            batch = points[chosen[start : start + batch_size]]
            parts.append(network.features(network.to_input(batch)).float().cpu())
            if on_batch is not None:
                on_batch(min(start + batch_size, len(chosen)), len(chosen))
    return torch.cat(parts)


def predict_logits(network: Network, features: Tensor, *, batch_size: int = 4096) -> Tensor:
    """The logits ``[N, C]``, float32 on the CPU, of feature vectors ``[N, F]``."""
    parts = []
    with evaluating(network):
        for z in features.split(batch_size):
            # A copy: the head of a user's network may start with an in-place ReLU.
            logits = network.head(z.to(network.device, copy=True))
            parts.append(logits.float().cpu())
    return torch.cat(parts)
