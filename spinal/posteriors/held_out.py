"""Labelled points that a network has not seen, and networks trained without them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.classifiers.blend import FOLDS, Blend, fit_on_network
from spinal.classifiers.parts import Part, stratified_folds
from spinal.errors import SpinalError
from spinal.files import read_tensors, write_tensors
from spinal.networks import compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.posteriors.posterior import FitContext, HeldOutNetwork, View

#: The desired number of held-out points, and the maximum number of networks to get them.
_HELD_OUT, _MOST_NETWORKS = 40, 3
_FORMAT = "spinal.held-out/1"
_RESERVE_FILE, _RESERVE_FORMAT = "reserve.safetensors", "spinal.reserve/1"


@dataclass(frozen=True, eq=False)
class Held:
    """Everything needed to continue training a held-out network with more labels.

    Attributes:
        seen: indices of the points that it was trained on, ``[S]``.
        unseen: indices of the points that it must never be trained on, ``[U]``.
        weights: weights of the network, by name.
    """

    seen: Tensor
    unseen: Tensor
    weights: dict[str, Tensor]

    def hold_out(self, indices: Tensor, labels: Tensor, seed: int) -> Tensor:
        """Which labelled points to hold out, ``[N]`` booleans: ``unseen``, and 1/5 of new points.

        Args:
            indices: indices of the labelled points, ``[N]``.
            labels: their classes, ``[N]``.
            seed: for the choice of new points.
        """
        held = torch.isin(indices, self.unseen)
        new = ~held & ~torch.isin(indices, self.seen)
        # A random fold: the first folds hold the lowest classes if there are few new points.
        fold = int(np.random.default_rng(seed).integers(FOLDS))
        held[new] = stratified_folds(labels[new], FOLDS, seed) == fold
        return held


@dataclass
class Reserve:
    """Labelled points that the learner's network never learns from.

    They are drawn at random from the labelled points of the first fit.

    Attributes:
        size: how many points; at most a fifth of the labelled points of the first fit, and of each
            class among them.
        points: their indices, ``[R]``; None before the first fit.
    """

    size: int = 0
    points: Tensor | None = None

    def __post_init__(self) -> None:
        if self.size < 0:
            raise SpinalError(f"reserve is a number of labels, 0 or more, not {self.size}")

    def among(
        self, indices: NDArray[np.int64], labels: NDArray[np.int64], seed: int
    ) -> Tensor | None:
        """Which labelled points are reserved, ``[N]`` booleans; None if there are none.

        Args:
            indices: indices of the labelled points, ``[N]``.
            labels: their classes, ``[N]``.
            seed: for the choice of points, in the first fit.
        """
        if self.points is None:
            n = min(self.size, len(indices) // FOLDS)
            rows = np.random.default_rng(seed).choice(len(indices), n, replace=False)
            classes, counts = np.unique(labels, return_counts=True)
            of_class = labels[rows] == classes[:, None]
            kept = (of_class & (of_class.cumsum(1) <= counts[:, None] // FOLDS)).any(0)
            self.points = torch.as_tensor(indices[rows[kept]])
        reserved = torch.isin(torch.as_tensor(indices), self.points)
        return reserved if reserved.any() else None

    def save(self, folder: Path) -> None:
        """Write the points to a file in ``folder``; also if the first fit could reserve none."""
        if self.size and self.points is not None:
            write_tensors(folder / _RESERVE_FILE, {"points": self.points}, _RESERVE_FORMAT, {})

    def load(self, folder: Path) -> None:
        """Read the points, if `save` wrote any."""
        self.points = None
        if (folder / _RESERVE_FILE).exists():
            _, tensors = read_tensors(folder / _RESERVE_FILE, _RESERVE_FORMAT)
            self.points = tensors["points"]


def fit_mixture(
    labelled: View,
    labels: Tensor,
    context: FitContext,
    held: Sequence[Held] = (),
) -> tuple[Blend, Sequence[Held]]:
    """A mixture on the features of a network, with settings chosen by held-out networks.

    Args:
        labelled: the labelled points.
        labels: their classes, ``[N]``.
        context: how to train. If it has held-out networks, no others are trained.
        held: what the last fit returned.

    Returns:
        The mixture, and everything needed to continue training the held-out networks in a later
        fit.
    """
    z, n_classes = labelled.features.cpu(), context.n_classes
    others = context.held_out or list(held_out_networks(labelled, labels, context, held))
    parts, held_head = parts_of(labelled, others, n_classes)
    blend = fit_on_network(z, labels, n_classes, parts, held_head)
    goes_on = context.retrain == "continue" and not context.held_out
    return blend, to_go_on(labelled, others) if goes_on else []


def held_out_folds(labels: Tensor, seed: int) -> Iterator[tuple[int, Tensor]]:
    """Fifths of the labelled points: the number of each, and its points, ``[N]`` booleans.

    There is one fifth, or up to three if there are few labels.
    """
    folds = stratified_folds(labels, FOLDS, seed)
    for fold in range(_n_networks(len(labels)) if len(labels) > 1 else 0):
        held = folds == fold
        if held.any():
            yield fold, held


def _n_networks(n_labels: int) -> int:
    """How many networks, each without a fifth of the labels, hold out enough points."""
    return min(_MOST_NETWORKS, -(-_HELD_OUT * FOLDS // n_labels))


def held_out_networks(
    labelled: View, labels: Tensor, context: FitContext, earlier: Sequence[Held] = ()
) -> Iterator[HeldOutNetwork]:
    """Networks like the network of the view, each trained without one fifth of the labels.

    Args:
        labelled: the labelled points.
        labels: their classes, ``[N]``.
        context: how to train.
        earlier: held-out networks of an earlier fit. If the network of the view continued from its
            last weights, so do these, and points that they have not seen stay unseen.
    """
    points, indices = labelled.points[labelled.indices], torch.as_tensor(labelled.indices)
    goes_on = context.goes_on(labelled.network, [old.weights for old in earlier])
    if goes_on:
        earlier = earlier[: _n_networks(len(labels))]  # later fits need fewer
        folds = [
            (number, old.hold_out(indices, labels, derived_seed(context.seed, number)))
            for number, old in enumerate(earlier)
        ]
    else:
        folds = list(held_out_folds(labels, context.seed))
    for fold, held in folds:
        network = copy.deepcopy(labelled.network)
        if goes_on:
            network.load_state_dict(earlier[fold].weights)
        train(
            network,
            points[~held.numpy()],
            labels[~held],
            context.training,
            validation=context.validation,
            seed=derived_seed(context.seed, 1 + fold),
            start="continue" if goes_on else "scratch",
            on_step=context.on_part(fold, len(folds)),
        )
        yield HeldOutNetwork(network, held)


def parts_of(
    labelled: View, others: Sequence[HeldOutNetwork], n_classes: int
) -> tuple[list[Part], Tensor]:
    """Features of the labelled points from each held-out network, and its predictions.

    Returns:
        Features ``[N, F]`` and which points are held out, for each network; and log-probabilities
        for these points, one network after the other, ``[M, C]``.
    """
    points = labelled.points[labelled.indices]
    parts, said = [], [torch.zeros(0, n_classes)]
    for other in others:
        same = other.network is labelled.network
        z = labelled.features if same else compute_features(other.network, points)
        parts.append(Part(z.cpu(), other.held))
        said.append(predict_logits(other.network, z[other.held]).log_softmax(1).cpu())
    return parts, torch.cat(said)


def to_go_on(labelled: View, others: Sequence[HeldOutNetwork]) -> list[Held]:
    """What `held_out_networks` needs to continue training these networks."""
    indices = torch.as_tensor(labelled.indices)
    return [
        Held(
            indices[~other.held],
            indices[other.held],
            {name: t.cpu().clone() for name, t in other.network.state_dict().items()},
        )
        for other in others
    ]


def save_held(path: Path, held: Sequence[Held]) -> None:
    """Write held-out networks to a file."""
    tensors: dict[str, Tensor] = {}
    for number, one in enumerate(held):
        tensors |= {f"{number}/seen": one.seen, f"{number}/unseen": one.unseen}
        tensors |= {f"{number}/weights/{name}": t for name, t in one.weights.items()}
    write_tensors(path, tensors, _FORMAT, {"networks": len(held)})


def load_held(path: Path) -> list[Held]:
    """Read held-out networks that `save_held` wrote."""
    header, tensors = read_tensors(path, _FORMAT)
    held = []
    for number in range(int(header["networks"])):
        below = f"{number}/weights/"
        weights = {k.removeprefix(below): t for k, t in tensors.items() if k.startswith(below)}
        held.append(Held(tensors[f"{number}/seen"], tensors[f"{number}/unseen"], weights))
    return held
