"""Trained models for ranking: a saved learner, a labelling project, or an exported classifier."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.acquisition import Acquisition, Candidates
from spinal.data import ArrayPoints
from spinal.encoders import Encoder
from spinal.encoders.encoder import BATCH
from spinal.errors import DataError, SpinalError
from spinal.files import CHECKSUMS, existing_folder, read_tensors
from spinal.label.exports import standalone
from spinal.label.exports.classifier import FILE, ImageClassifier
from spinal.label.exports.fitted import load_classifier, load_text_classifier
from spinal.label.exports.modules import FeatureClassifier
from spinal.label.exports.text_classifier import TextClassifier
from spinal.label.store.project import open_project
from spinal.learner import storage
from spinal.learner.candidates import CandidateSource
from spinal.learner.seeds import Purpose, round_seed
from spinal.learner.timing import Timer
from spinal.networks import Network, compute_features
from spinal.posteriors import Posterior, View
from spinal.ranking.shards import Items

#: Why items were left out, by their number in the batch.
Skips = dict[int, str]


class Model(ABC):
    """Encodes points, and computes what an acquisition function needs.

    Attributes:
        classes: names of the classes.
        fingerprint: changes with the model.
    """

    classes: tuple[str, ...]
    fingerprint: str

    @abstractmethod
    def encode(self, items: Items) -> tuple[NDArray, Skips]:
        """The input of `assess` for all items that are not skipped, in order; and the skips."""

    @abstractmethod
    def assess(self, points: NDArray, acquisition: Acquisition) -> Candidates:
        """Class probabilities of N points, and what else the acquisition function needs.

        Args:
            points: see `encode`.
            acquisition: the acquisition function. The caller adds features of labelled points.

        Raises:
            SpinalError: if the model cannot compute them.
        """


class LearnerModel(Model):
    """A learner that `ActiveLearner.save` wrote, for points like those of its pool.

    Args:
        folder: the folder that it was saved in.
    """

    def __init__(self, folder: Path) -> None:
        folder = existing_folder(folder)
        saved = storage.read(folder)
        if not saved.rounds:
            raise SpinalError(f"{folder}: the learner was not fitted before it was saved")
        storage.given_or_saved(None, saved.network, "network", folder)
        self._network: Network = storage.load_network(folder)
        self._posterior: Posterior = storage.load_posterior(folder)
        self._network.preprocess.fills_missing = self._posterior.takes_missing
        self._shape = tuple(self._network.config["input_shape"])
        self._seed = round_seed(saved.settings.seed, saved.rounds, Purpose.SAMPLES)
        n_classes = self._network.config["n_classes"]
        self.classes = (saved.classes or tuple(map(str, range(n_classes))))[:n_classes]
        self.fingerprint = _hash_of(folder / CHECKSUMS)

    def encode(self, items: Items) -> tuple[NDArray, Skips]:
        if not isinstance(items, np.ndarray):
            raise DataError(
                "a saved learner ranks vectors or arrays of images, not texts or image files: "
                "encode them first, or use the folder of a project (spinal label) as the model"
            )
        points = items[..., None] if items.ndim == 3 else items
        if points.shape[1:] != self._shape:
            raise DataError(
                f"points of shape {points.shape[1:]}; the learner was trained on {self._shape}"
            )
        if points.ndim == 4:
            return points, {}
        return _usable(points, self._posterior.takes_missing)

    def assess(self, points: NDArray, acquisition: Acquisition) -> Candidates:
        held = ArrayPoints(points)

        def view(indices: NDArray[np.int64]) -> View:
            return View(self._network, held, indices, compute_features(self._network, held))

        source = CandidateSource(self._posterior, self._posterior, view, view, Timer(), self._seed)
        needs = acquisition.needs | {"log_probs"}
        arrays = source.assess(view, np.arange(len(points)), needs, acquisition)
        return Candidates(**arrays)


class ClassifierModel(Model):
    """The classifier of a project with its encoder. It also takes vectors from that encoder.

    Args:
        classifier: of images or texts.
        fingerprint: of the classifier.

    Raises:
        SpinalError: if an item can have several classes: acquisition functions compare classes.
    """

    def __init__(self, classifier: FeatureClassifier, fingerprint: str) -> None:
        if isinstance(classifier.module, standalone.MultiClassifier):
            raise SpinalError(
                "spinal rank needs a model with one class per item, and this one was trained with "
                "--multi: use spinal predict, and sort by its column uncertainty"
            )
        self._classifier, self.classes = classifier, classifier.classes
        self.fingerprint = f"{fingerprint} {classifier.encoder.fingerprint}"
        self._kind = str if isinstance(classifier, TextClassifier) else bytes

    def encode(self, items: Items) -> tuple[NDArray, Skips]:
        encoder: Encoder = self._classifier.encoder
        if isinstance(items, np.ndarray) and items.ndim == 2:
            if items.shape[1] != encoder.width:
                raise DataError(
                    f"vectors of {items.shape[1]} numbers; {encoder.name} gives {encoder.width}"
                )
            return _usable(items, False)
        if not isinstance(items, np.ndarray) and not isinstance(items[0], self._kind):
            kinds = {str: "texts", bytes: "images"}
            raise DataError(f"the model is for {kinds[self._kind]}, not {kinds[type(items[0])]}")
        prepared, skips = [], {}
        for i, item in enumerate(items):
            try:
                prepared.append(encoder.prepare(item))
            except DataError as error:
                skips[i] = str(error)
        batches = [prepared[i : i + BATCH] for i in range(0, len(prepared), BATCH)]
        parts = [np.empty((0, encoder.width), np.float32), *map(encoder.embed, batches)]
        return np.concatenate(parts), skips

    def assess(self, points: NDArray, acquisition: Acquisition) -> Candidates:
        if acquisition.compares_samples or "moments" in acquisition.needs:
            raise SpinalError(
                "the model of a project is a single model, and this acquisition function compares "
                "samples: choose another one, such as --acquisition margin"
            )
        probabilities, log_density = self._classifier.predict(points)
        log_probs = torch.from_numpy(probabilities).clamp_min(1e-30).log()
        return Candidates(
            log_probs=log_probs.unsqueeze(1),
            features=torch.from_numpy(points) if "features" in acquisition.needs else None,
            log_density=torch.from_numpy(log_density),
        )


def load_model(place: str | Path) -> Model:
    """The model in a folder.

    Args:
        place: a folder that `ActiveLearner.save` wrote, one that ``spinal export --to model``
            wrote, or a project of ``spinal label``: its folder, or its table of texts.

    Raises:
        SpinalError: if there is no model.
    """
    path = Path(place).expanduser()
    if (path / "learner.json").exists():
        return LearnerModel(path)
    if (path / FILE).exists():
        header, _ = read_tensors(path / FILE, standalone.FORMAT, *standalone.EARLIER)
        of_images = "size" in header.get("backbone", {})
        exported = (ImageClassifier if of_images else TextClassifier).load(path / FILE)
        return ClassifierModel(exported, _hash_of(path / FILE))
    if not path.exists():
        raise SpinalError(f"{path}: no such model")
    project = open_project(path)
    try:
        of_texts = project.texts is not None
        classifier = load_text_classifier(project) if of_texts else load_classifier(project)
        return ClassifierModel(classifier, _hash_of(project.model_folder / CHECKSUMS))
    finally:
        project.close()


def _usable(points_N_D: NDArray, missing: bool) -> tuple[NDArray, Skips]:
    """The rows with only finite numbers, or NaN if ``missing``; and why others are skipped."""
    infinite = np.isinf(points_N_D).any(1)
    lacking = np.isnan(points_N_D).any(1) & (not missing)
    skips = dict.fromkeys(np.flatnonzero(lacking).tolist(), "a number is missing")
    skips |= dict.fromkeys(np.flatnonzero(infinite).tolist(), "a number is infinite")
    return np.ascontiguousarray(points_N_D[~(infinite | lacking)], np.float32), skips


def _hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
