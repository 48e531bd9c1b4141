r"""Trees, for tables, where classes are often separated by thresholds on single columns.

A tree is a circuit too: a sum over its leaves, each a product of an interval for every feature and
the class frequencies in the leaf. The mean of many trees is a mixture of such circuits.

Each tree is grown on a bootstrap sample, with random thresholds (Geurts et al., 2006). The points
that its sample left out are its held-out points, so nothing has to be fitted twice.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from torch import Tensor

_TREES = 100


@dataclass(frozen=True, eq=False)
class Trees:
    """Grown trees, as arrays over all nodes of all trees.

    Attributes:
        roots: the first node of each tree, ``[T]``.
        feature: the feature that a node compares, ``[nodes]``; -1 at a leaf.
        threshold: values up to the threshold go left, ``[nodes]``.
        children: the child nodes, ``[nodes, 2]``.
        probs: class frequencies at each node, ``[nodes, C]``.
        prior: class frequencies that count as one more tree, ``[C]``.
    """

    roots: Tensor
    feature: Tensor
    threshold: Tensor
    children: Tensor
    probs: Tensor
    prior: Tensor

    def log_probs(self, x: Tensor) -> Tensor:
        """Log-probabilities ``[N, C]`` at features ``[N, D]``."""
        total = self.probs[self.leaves(x)].sum(1)
        return ((total + self.prior) / (len(self.roots) + 1)).log()

    def leaves(self, x: Tensor) -> Tensor:
        """The leaf that each point falls into, ``[N, T]``."""
        x = x.float()  # as in training
        node = self.roots.expand(len(x), -1)
        while True:
            feature = self.feature[node]
            inside = feature >= 0
            if not inside.any():
                return node
            right = x.gather(1, feature.clamp_min(0)) > self.threshold[node]
            node = torch.where(inside, self.children[node, right.long()], node)


def fit_trees(x: Tensor, y: Tensor, n_classes: int, seed: int) -> tuple[Trees, Tensor]:
    """Grow trees.

    Args:
        x: features ``[N, D]``.
        y: classes ``[N]``.
        n_classes: C.
        seed: for the samples and the thresholds.

    Returns:
        The trees, and predictions ``[N, C]`` for the same points, each from the trees that did not
        see it.
    """
    features, labels = x.float().numpy(), y.numpy()
    rng = np.random.default_rng(seed)
    counts = np.bincount(labels, minlength=n_classes) + 1.0
    prior = counts / counts.sum()
    votes, voters = np.zeros((len(y), n_classes)), np.zeros(len(y))
    grown: list[tuple[NDArray, ...]] = []
    for _ in range(_TREES):
        drawn = rng.integers(len(y), size=len(y))
        left_out = np.setdiff1d(np.arange(len(y)), drawn)
        tree = ExtraTreesClassifier(1, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():  # about almost as many classes as points
            warnings.simplefilter("ignore", UserWarning)
            tree.fit(features[drawn], labels[drawn])
        nodes = tree.estimators_[0].tree_
        probs = np.zeros((nodes.node_count, n_classes))
        probs[:, tree.classes_] = nodes.value[:, 0] / nodes.value[:, 0].sum(1, keepdims=True)
        votes[left_out] += probs[nodes.apply(features[left_out])]
        voters[left_out] += 1
        children = np.stack([nodes.children_left, nodes.children_right], 1)
        feature = np.where(children[:, 0] < 0, -1, nodes.feature)
        grown.append((feature, nodes.threshold, children, probs))
    held = torch.from_numpy((votes + prior) / (voters[:, None] + 1)).log()
    return _joined(grown, prior), held


def _joined(grown: list[tuple[NDArray, ...]], prior: NDArray) -> Trees:
    sizes = [len(tree[0]) for tree in grown]
    roots = np.cumsum([0, *sizes[:-1]])
    children = [tree[2] + root for tree, root in zip(grown, roots, strict=True)]
    feature, threshold, probs = (np.concatenate([tree[i] for tree in grown]) for i in (0, 1, 3))
    return Trees(
        torch.from_numpy(roots),
        torch.from_numpy(feature),
        torch.from_numpy(threshold).float(),
        torch.from_numpy(np.concatenate(children)),
        torch.from_numpy(probs),
        torch.from_numpy(prior),
    )
