"""Networks that each see a part of the labels: how a network does on points it never saw."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from torch import Tensor

from spinal.classifiers.blend import FOLDS
from spinal.classifiers.parts import stratified_folds
from spinal.networks import train
from spinal.networks.network import derived_seed
from spinal.posteriors.posterior import FitContext, HeldOutNetwork, View

#: Held-out points to judge by, if that takes no more than so many networks.
_HELD_OUT, _MOST_NETWORKS = 40, 3


def held_out_folds(labels: Tensor, seed: int) -> Iterator[tuple[int, Tensor]]:
    """A fifth of the labelled points each time: its number, and which points, ``[N]`` booleans.

    One fifth, unless labels are so few that it tells little: then up to three.
    """
    folds = stratified_folds(labels, FOLDS, seed)
    n_networks = min(_MOST_NETWORKS, -(-_HELD_OUT * FOLDS // len(labels)))
    for fold in range(n_networks if len(labels) > 1 else 0):
        held = folds == fold
        if held.any():
            yield fold, held


def held_out_networks(
    labelled: View, labels: Tensor, context: FitContext
) -> Iterator[HeldOutNetwork]:
    """Networks like that of the view, each trained without one fifth of the labels."""
    points = labelled.points[labelled.indices]
    for fold, held in held_out_folds(labels, context.seed):
        network = copy.deepcopy(labelled.network)
        train(
            network,
            points[~held.numpy()],
            labels[~held],
            context.training,
            validation=context.validation,
            seed=derived_seed(context.seed, 1 + fold),
            on_step=context.on_step,
        )
        yield HeldOutNetwork(network, held)
