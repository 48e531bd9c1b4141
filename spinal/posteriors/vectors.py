"""The vectors of points that classifiers work on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.classifiers.units import in_different_units
from spinal.networks import Network
from spinal.posteriors.posterior import FitContext, View

#: Number of unlabelled points from which units and class frequencies are computed.
UNLABELLED = 2000
#: Number of points of the pool to learn from.
POOL = 5000
#: Points per chunk.
_CHUNK = 4096


def on_inputs(network: Network) -> bool:
    """Whether the points are vectors, and the network is a single dense layer on them.

    Classifiers then work on the points themselves, which do not depend on the labels; otherwise on
    the features of the network.
    """
    config = network.config
    return config.get("name") == "dense" and len(config["input_shape"]) == 1


def vector_batches(view: View) -> Iterator[tuple[slice, Tensor]]:
    """The vectors of the view in batches: rows, and their vectors ``[n, D]``."""
    for start in range(0, len(view), _CHUNK):
        rows = slice(start, min(start + _CHUNK, len(view)))
        if on_inputs(view.network):
            yield rows, torch.as_tensor(view.points[view.indices[rows]])
        else:
            yield rows, view.features[rows].cpu()


def rows_of(wanted: NDArray[np.int64], among: NDArray[np.int64]) -> Tensor:
    """The position of each wanted index in ``among``, ``[N]``; each must occur there once."""
    order = np.argsort(among)
    return torch.from_numpy(order[np.searchsorted(among, wanted, sorter=order)])


def comparable_features(view: View) -> Tensor:
    """Features of all points of the view, ``[N, F]``, for comparisons of points.

    These are the vectors that classifiers work on. If their features were measured in different
    units, they are divided by the standard deviations.
    """
    x = all_vectors(view).float()
    deviation = view.network.preprocess.std.cpu()
    return x / deviation if on_inputs(view.network) and in_different_units(deviation) else x


def unlabelled_vectors(labelled: View, context: FitContext) -> Tensor | None:
    """Vectors of unlabelled points, ``[M, D]``, to compute units from; None if there are none.

    Also None for features of a network, which all have the same unit.
    """
    if context.draw_unlabelled is None or not on_inputs(labelled.network):
        return None
    drawn = context.draw_unlabelled(UNLABELLED)
    return all_vectors(drawn) if len(drawn) else None


def all_vectors(view: View) -> Tensor:
    """The vectors of all points of the view, ``[N, D]``."""
    if not len(view):
        empty = view.points[view.indices] if on_inputs(view.network) else view.features.cpu()
        return torch.as_tensor(empty)
    return torch.cat([vectors for _, vectors in vector_batches(view)])
