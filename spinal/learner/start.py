"""A model that was trained elsewhere, as the start of a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spinal.data import Pool
from spinal.errors import SpinalError
from spinal.learner.parts import make_network
from spinal.networks import Network, compute_features, predict_logits
from spinal.posteriors import Deterministic, FitContext, Posterior, View
from spinal.posteriors.estimator import log_probs


@dataclass
class Given(Posterior):
    """Class probabilities from a classifier that was fitted elsewhere.

    Attributes:
        model: has `predict_proba`, for points of the pool as ``[N, D]``; images are flattened.
        columns: the class number of each of its outputs.
        n_classes: C.
    """

    model: Any
    columns: tuple[int, ...]
    n_classes: int

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        """Do nothing: the model is already fitted."""

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        points = view.points[view.indices]
        if not len(points):
            return torch.zeros(0, self.n_classes)
        probs = self.model.predict_proba(points.reshape(len(points), -1))
        return log_probs(np.asarray(probs), np.array(self.columns), self.n_classes)


def given_network(model: nn.Module, pool: Pool) -> Network:
    """A trained module as the network of a learner; training starts from its weights.

    Raises:
        SpinalError: if its number of outputs is not the pool's number of classes.
    """
    if isinstance(model, Network):  # without its config, which would rebuild it with new weights
        network = Network(model.body, model.head, preprocess=model.preprocess, pretrained=True)
    else:
        network = make_network(model, pool, seed=0)
    if not network.preprocess.fitted:
        network.preprocess.fit(pool.points)
    outputs = predict_logits(network, compute_features(network, pool.points, np.arange(1))).shape[1]
    if outputs != len(pool.classes):
        raise SpinalError(f"the model has {outputs} outputs, the pool {len(pool.classes)} classes")
    return network


def given_posterior(model: Any, classes: Sequence[str]) -> Posterior:
    """A trained model as a posterior.

    Raises:
        SpinalError: if it is neither a module nor a fitted classifier for these classes.
    """
    if isinstance(model, nn.Module):
        return Deterministic()
    names = getattr(model, "classes_", None)
    if not hasattr(model, "predict_proba") or names is None:
        raise SpinalError(
            f"{type(model).__name__}: give a trained nn.Module, or a fitted classifier with "
            "predict_proba and classes_"
        )
    number = {name: i for i, name in enumerate(classes)}
    columns = [name if isinstance(name, int) else number.get(str(name)) for name in names.tolist()]
    if any(column is None or not 0 <= column < len(classes) for column in columns):
        raise SpinalError(
            f"the classes of the model are {', '.join(map(str, names))}, those of the pool "
            f"{', '.join(classes)}"
        )
    return Given(
        model, tuple(int(column) for column in columns if column is not None), len(classes)
    )
