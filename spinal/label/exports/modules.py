"""Network and posterior as one module of plain operations: `spinal.label.exports.standalone`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.classifiers.multi import MultiBlend
from spinal.data import Points, as_points, iter_batches
from spinal.encoders import Encoder
from spinal.label.exports import standalone
from spinal.label.exports.onnx_file import ExportError, check_equal
from spinal.networks import Network, compute_features
from spinal.posteriors import SPN, View

E = TypeVar("E", bound=Encoder)
Module = standalone.Classifier | standalone.MultiClassifier


class FeatureClassifier(Generic[E]):
    """An encoder, and the classifier of its features.

    Args:
        encoder: computes the features.
        module: classifies the features.
    """

    def __init__(self, encoder: E, module: Module) -> None:
        self.encoder, self.module = encoder, module

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.module.classes

    def predict(
        self, features: Points | NDArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class probabilities ``[N, C]`` and log-densities ``[N]`` for features ``[N, D]``."""
        return predict_by_module(self.module, features)


def dense_module(
    network: Network,
    posterior: SPN,
    classes: Sequence[str],
    encoder: Encoder,
    described: Mapping[str, object],
) -> standalone.Classifier:
    """The module of a network that was fitted to the features of an encoder.

    Args:
        network: one dense layer.
        posterior: fitted with it.
        classes: names of the classes.
        encoder: computes the features.
        described: a description of the encoder.

    Raises:
        ExportError: if the network has other layers, the encoder has another number of features, or
            the module's predictions differ from the model's.
    """
    last = network.last_layer()
    if not last.is_only:
        raise ExportError("only a network of one dense layer, on features, can be exported")
    width, n_classes = last.weight.size(1), network.config["n_classes"]
    if (width, n_classes) != (encoder.width, len(classes)):
        raise ExportError(
            f"a model of {n_classes} classes on {width} features, but "
            f"{encoder.name} has {encoder.width}, and there are {len(classes)} classes"
        )
    module = standalone.Classifier(posterior.to_plain_arrays(network), classes, described)
    mean, std = network.preprocess.mean.expand(width), network.preprocess.std.expand(width)
    noise = torch.randn(64, width, generator=torch.Generator().manual_seed(0))
    features = (mean.cpu() + std.cpu() * noise).numpy()
    said = predict_by_module(module, features)
    check_equal(said, predict_by_posterior(network, posterior, features), "the model")
    return module


def multi_module(
    model: MultiBlend, classes: Sequence[str], encoder: Encoder, described: Mapping[str, object]
) -> standalone.MultiClassifier:
    """The module of a model of independent classes; see `dense_module`.

    Raises:
        ExportError: if the encoder has another number of features, or the module's predictions
            differ from the model's.
    """
    width = len(model.axes)
    if (width, len(model.blends)) != (encoder.width, len(classes)):
        raise ExportError(
            f"a model of {len(model.blends)} classes on {width} features, but "
            f"{encoder.name} has {encoder.width}, and there are {len(classes)} classes"
        )
    module = standalone.MultiClassifier(model.to_plain_arrays(), classes, described)
    features = torch.randn(64, width, generator=torch.Generator().manual_seed(0))
    said = predict_by_module(module, features.numpy())
    expected = model.probs(features).numpy(), model.log_density(features).numpy()
    check_equal(said, expected, "the model")
    return module


def predict_by_module(
    module: Module, features: Points | NDArray
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Class probabilities ``[N, C]`` and log-densities ``[N]`` for features ``[N, D]``."""
    points = as_points(features)
    probabilities = [np.empty((0, len(module.classes)), np.float32)]
    densities = [np.empty(0, np.float32)]
    with torch.inference_mode():
        for batch in iter_batches(points, np.arange(len(points)), 128):
            probs, density = module(torch.from_numpy(batch))
            probabilities.append(probs.numpy())
            densities.append(density.numpy())
    return np.concatenate(probabilities), np.concatenate(densities)


def predict_by_posterior(
    network: Network, posterior: SPN, points: NDArray
) -> tuple[NDArray, NDArray]:
    """Class probabilities ``[N, C]`` and log-densities ``[N]`` from the posterior itself."""
    indices, features = np.arange(len(points)), compute_features(network, points)
    view = View(network, as_points(points), indices, features)
    return posterior.predict(view).exp().numpy(), posterior.log_density(view).numpy()
