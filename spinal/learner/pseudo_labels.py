r"""A network that learns from pseudo-labels of the pool, if this improves held-out predictions.

1. A network is trained on the labels.
2. Labels spread along a graph of neighbours in its features. Each other point gets targets and a
   weight that is high if the network and the graph agree; see `spinal.classifiers.pool`.
3. A network is trained from scratch on labels and targets. Steps 2 and 3 are done twice.

All of this is first tried without a fifth of the labels. It is used only if steps 2 and 3 make
these labels more likely.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.classifiers.graph import NeighbourGraph
from spinal.classifiers.mixing import held_out_gain
from spinal.classifiers.pool import pool_targets, spread_labels
from spinal.networks import Network, PseudoLabels, compute_features, predict_logits
from spinal.networks.network import derived_seed
from spinal.posteriors.held_out import held_out_folds
from spinal.posteriors.posterior import HeldOutNetwork, View
from spinal.posteriors.vectors import comparable_features

_ROUNDS = 2

#: ``train(network, known, pseudo, seed)`` trains a network from scratch on the labels of the
#: ``known`` points, ``[N]`` booleans, and on pseudo-labels.
Train = Callable[[Network, Tensor, PseudoLabels | None, int], None]


@dataclass(frozen=True, eq=False)
class LabelledPool:
    """Labelled and unlabelled points to learn from.

    Attributes:
        points: all points, ``[P, ...]``.
        labelled: rows of the labelled points, ``[N]``.
        labels: their classes, ``[N]``.
        n_classes: C.
    """

    points: NDArray
    labelled: Tensor
    labels: Tensor
    n_classes: int

    def guess(self, network: Network, known: Tensor) -> PseudoLabels:
        """Pseudo-labels of the points without labels.

        Args:
            network: trained on the labels of the known points.
            known: which labelled points are known, ``[N]`` booleans. The others get no
                pseudo-labels.
        """
        rows = np.arange(len(self.points))
        features = compute_features(network, self.points)
        view = View(network, self.points, rows, features)
        smoothing = NeighbourGraph.of(comparable_features(view).cpu()).smoothing()
        spread = spread_labels(smoothing, self.labelled[known], self.labels[known], self.n_classes)
        log_probs = predict_logits(network, features).log_softmax(1).cpu()
        targets, weights = pool_targets(log_probs, spread)
        weights[self.labelled] = 0
        chosen = weights > 0
        return PseudoLabels(self.points[chosen.numpy()], targets[chosen], weights[chosen])


def teach_network(
    network: Network, pool: LabelledPool, train: Train, seed: int
) -> tuple[bool, list[HeldOutNetwork]]:
    """Train a network further on pseudo-labels of the pool, if that helps.

    Args:
        network: trained further in place.
        pool: the points.
        train: how networks are trained.
        seed: the seed that the network was trained with.

    Returns:
        Whether it learned from the pool, and networks that were trained like it, each without some
        of the labels.
    """
    plain, taught = [], []
    for fold, held in held_out_folds(pool.labels, seed):
        other, other_seed = copy.deepcopy(network), derived_seed(seed, 1 + fold)
        train(other, ~held, None, other_seed)
        plain.append(HeldOutNetwork(copy.deepcopy(other), held))
        _teach(other, pool, ~held, train, other_seed)
        taught.append(HeldOutNetwork(other, held))
    held_labels = torch.cat([pool.labels[:0], *(pool.labels[part.held] for part in plain)])
    before, after = (_held_log_probs(parts, pool) for parts in (plain, taught))
    if held_out_gain(after, before, held_labels) <= 0:
        return False, plain
    _teach(network, pool, torch.ones(len(pool.labels), dtype=torch.bool), train, seed)
    return True, taught


def _teach(network: Network, pool: LabelledPool, known: Tensor, train: Train, seed: int) -> None:
    for _ in range(_ROUNDS):
        pseudo = pool.guess(network, known)
        if len(pseudo.weights):
            train(network, known, pseudo, seed)


def _held_log_probs(parts: Sequence[HeldOutNetwork], pool: LabelledPool) -> Tensor:
    """Predictions ``[M, C]`` of each network for the points that it did not see."""
    said = [torch.zeros(0, pool.n_classes)]
    for part in parts:
        rows = pool.labelled[part.held].numpy()
        features = compute_features(part.network, pool.points[rows])
        said.append(predict_logits(part.network, features).log_softmax(1).cpu())
    return torch.cat(said)
