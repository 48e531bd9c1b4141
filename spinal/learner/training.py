"""How a learner trains its network: on the labels, and on pseudo-labels of the pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal import networks
from spinal.data import Pool
from spinal.learner.pseudo_labels import LabelledPool, teach_network
from spinal.networks import Network, PseudoLabels, TrainSettings
from spinal.posteriors.posterior import HeldOutNetwork, LearnFrom, Validation
from spinal.posteriors.vectors import rows_of


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of training a network.

    Attributes:
        learned_from: the ``labels`` only, or the ``pool`` as well.
        held_out: networks that were trained like it without some of the labels, if there are any.
    """

    learned_from: LearnFrom = "labels"
    held_out: Sequence[HeldOutNetwork] = ()


def train_network(
    network: Network,
    pool: Pool,
    settings: TrainSettings,
    *,
    others: NDArray[np.int64] | None,
    reserved: Tensor | None,
    validation: Validation | None,
    seed: int,
    start: Literal["scratch", "continue"],
    on_step: Callable[[int, int, float], None] | None,
) -> Trained:
    """Train a network in place, on the labelled points.

    Args:
        network: the network.
        pool: the points and labels.
        settings: how to train.
        others: points of the pool to learn from, including the labelled points; None to learn from
            the labels only.
        reserved: labelled points that it must not learn from, ``[N]`` booleans; None for no points.
            Not used if it learns from pseudo-labels, which needs held-out networks of its own.
        validation: points and labels for early stopping.
        seed: for all randomness.
        start: where training on the labels starts. With pseudo-labels it starts from scratch.
        on_step: called with the step, the number of steps and the loss.
    """
    points, labels = pool.points[pool.labelled_indices], torch.as_tensor(pool.labels)

    def train(
        network: Network,
        known: Tensor,
        pseudo: PseudoLabels | None,
        seed: int,
        start: Literal["scratch", "continue"] = "scratch",
    ) -> None:
        networks.train(
            network,
            points[known.numpy()],
            labels[known],
            settings,
            pseudo=pseudo,
            validation=validation,
            seed=seed,
            start=start,
            on_step=on_step,
        )

    if others is None and reserved is not None:
        train(network, ~reserved, None, seed, start)
        return Trained(held_out=[HeldOutNetwork(network, reserved)])
    train(network, torch.ones(len(labels), dtype=torch.bool), None, seed, start)
    if others is None or len(others) == len(labels):
        return Trained()
    rows = rows_of(pool.labelled_indices, others)
    labelled_pool = LabelledPool(pool.points[others], rows, labels, len(pool.classes))
    better, held_out = teach_network(network, labelled_pool, train, seed)
    return Trained("pool" if better else "labels", held_out)


def as_arrays(validation: Validation, pool: Pool) -> Validation:
    """Validation points and labels as arrays; the points are of the same kind as the pool's."""
    data, labels = validation
    if isinstance(data, np.ndarray):
        return validation
    points = pool.points_like(data)
    return points[np.arange(len(points))], labels
