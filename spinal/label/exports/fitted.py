"""The fitted model of a project, as a classifier that needs no learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from spinal.classifiers.multi import MultiBlend
from spinal.encoders import build_fine_tuned, load_encoder
from spinal.encoders.images import require_images
from spinal.errors import FileFormatError, SpinalError
from spinal.label.exports.classifier import ImageClassifier
from spinal.label.exports.text_classifier import TextClassifier
from spinal.label.learning.features import project_encoder
from spinal.label.learning.learnt import learnt_classes
from spinal.label.store.networks import parse_network
from spinal.label.store.project import Project
from spinal.learner import storage
from spinal.learner.multi import is_fitted_multi, load_multi_model
from spinal.networks import NetworkError
from spinal.posteriors import SPN

_Classifier = TypeVar("_Classifier")
E = TypeVar("E")


def load_classifier(project: Project) -> ImageClassifier:
    """The newest classifier of a project of images.

    Raises:
        SpinalError: if there is none yet.
    """
    if project.settings.multi:
        encoder = require_images(load_encoder(project.settings.encoder))
        return _load_multi(project, ImageClassifier.from_multi, encoder)
    return _load(project, _to_classifier)


def load_text_classifier(project: Project) -> TextClassifier:
    """The newest classifier of a project of texts.

    Raises:
        SpinalError: if there is none yet.
    """
    if project.settings.multi:
        return _load_multi(project, TextClassifier.from_multi, project_encoder(project))

    def join(project: Project, posterior: SPN, classes: Sequence[str]) -> TextClassifier:
        network = storage.load_network(project.model_folder)
        return TextClassifier.join(network, posterior, classes, project_encoder(project))

    return _load(project, join)


def _load(
    project: Project, join: Callable[[Project, SPN, Sequence[str]], _Classifier]
) -> _Classifier:
    """The newest classifier of a project.

    Raises:
        SpinalError: if there is none yet.
    """
    if not storage.is_fitted(project.model_folder):
        raise _no_model(project)
    posterior = storage.load_posterior(project.model_folder)
    if not isinstance(posterior, SPN):
        raise SpinalError(
            f"{project.home}: its method is {project.settings.method!r}; only SPNs can be exported "
            f"and applied to more images: spinal label {project.folder} --method spn-cnn"
        )
    circuit = posterior.circuit
    assert circuit is not None
    classes = learnt_classes(project)[: circuit.n_classes]
    try:
        return join(project, posterior, classes)
    except (FileFormatError, NetworkError) as error:
        raise SpinalError(
            f"{project.home}: its model is not {project.settings.describe_model()} ({error}); "
            f"spinal label {project.folder} fits it again"
        ) from error


def _load_multi(
    project: Project, join: Callable[[MultiBlend, Sequence[str], E], _Classifier], encoder: E
) -> _Classifier:
    """The newest classifier of a project where an image can have several classes."""
    if not is_fitted_multi(project.model_folder):
        raise _no_model(project)
    model, classes = load_multi_model(project.model_folder)
    return join(model, classes, encoder)


def _no_model(project: Project) -> SpinalError:
    return SpinalError(
        f"{project.home}: holds no model yet: one is fitted once "
        f"{project.settings.first_answers} {project.settings.kind} are labelled "
        f"(spinal label {project.folder})"
    )


def _to_classifier(project: Project, posterior: SPN, classes: Sequence[str]) -> ImageClassifier:
    """The classifier made from the saved network and the posterior fitted with it."""
    settings, folder = project.settings, project.model_folder
    name, whole, _ = parse_network(settings.network)
    if name == "fine-tuned":
        encoder = require_images(load_encoder(settings.encoder))
        network = storage.load_network(folder, build_fine_tuned(encoder, len(classes)))
        return ImageClassifier.from_whole_network(network, posterior, classes, encoder)
    network = storage.load_network(folder)
    if network.config["name"] != name:
        raise FileFormatError(f"{folder}: holds a {network.config['name']}")
    if whole is None:
        encoder = require_images(load_encoder(settings.encoder))
        return ImageClassifier.from_dense_network(network, posterior, classes, encoder)
    like = settings.network.removesuffix(f"@{whole.size}")
    return ImageClassifier.from_whole_network(network, posterior, classes, like)
