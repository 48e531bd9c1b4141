"""Words that support a prediction: without them, the model would be less sure of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.data import as_points
from spinal.encoders import Encoder, encode
from spinal.encoders.tfidf import TfidfEncoder
from spinal.encoders.words import WORD
from spinal.files import write_text
from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project
from spinal.learner import storage
from spinal.learner.multi import load_multi_model
from spinal.networks import compute_features
from spinal.posteriors import View

#: Maximum number of marked words in a text, and minimum fall of the log-odds without a word.
MOST, LEAST = 12, 0.05
#: Maximum number of words to try if the encoder has to read the whole text for each.
_TRIED = 64
#: Number of texts to mark before the worker looks for more urgent steps.
CHUNK = 10
#: Number of predictions of each class, and of outliers, to mark besides the questions; and of all.
_TILES, _MOST_TILES = 60, 600


class Marker:
    r"""Finds the words of a text that support the predicted class.

    The weight of a word is the fall of the log-odds
    :math:`\log p(c \mid x) - \log(1 - p(c \mid x))` when all its occurrences are left out.

    Args:
        project: the project, whose newest model is used.
        encoder: the encoder of the project.
    """

    def __init__(self, project: Project, encoder: Encoder) -> None:
        self._encoder = encoder
        if project.settings.multi:
            model, _ = load_multi_model(project.model_folder)
            self._probs = lambda vectors: model.probs(torch.from_numpy(vectors)).numpy()
        else:
            self._probs = _predictor(project)

    def mark(self, text: str) -> list[tuple[str, float]]:
        """The words that support the predicted class, in lower case, strongest first."""
        words, vectors = self._leave_out(text)
        if not words:
            return []
        whole = encode(self._encoder, [text])
        probs = self._probs(np.concatenate([whole, vectors]))
        p = np.clip(probs[:, probs[0].argmax()], 1e-6, 1 - 1e-6)
        log_odds = np.log(p) - np.log(1 - p)
        weights = log_odds[0] - log_odds[1:]
        strongest = np.argsort(-weights, kind="stable")[:MOST]
        return [(words[i], round(float(weights[i]), 3)) for i in strongest if weights[i] >= LEAST]

    def _leave_out(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        """K different words of a text, and the vectors ``[K, D]`` of the text without each."""
        if isinstance(self._encoder, TfidfEncoder):
            return self._encoder.words.leave_out(text)
        words = list(dict.fromkeys(WORD.findall(text.lower())))[:_TRIED]
        without = [re.sub(rf"\b{re.escape(w)}\b", " ", text, flags=re.IGNORECASE) for w in words]
        return words, encode(self._encoder, without)


def _predictor(project: Project) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
    """Class probabilities ``[N, C]`` of vectors ``[N, D]`` by the newest model."""
    network = storage.load_network(project.model_folder)
    posterior = storage.load_posterior(project.model_folder)

    def probs(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        rows, features = np.arange(len(vectors)), compute_features(network, vectors)
        view = View(network, as_points(vectors), rows, features)
        return posterior.predict(view).double().exp().numpy()

    return probs


class Marks:
    """The marked words of the texts that the page will show next, in a file.

    Args:
        project: a project of texts.
        encoder: the encoder of the project.
    """

    def __init__(self, project: Project, encoder: Encoder) -> None:
        self._project, self._encoder = project, encoder
        self._marker: Marker | None = None
        self._left: list[int] = []  # numbers of texts to mark
        self._marked: dict[str, list[tuple[str, float]]] = {}

    @property
    def is_due(self) -> bool:
        """Whether there are texts to mark."""
        return bool(self._left)

    def begin(self, questions: Sequence[int], beliefs: Beliefs) -> None:
        """Start again after a fit: with its questions, then confident predictions and outliers."""
        self._marker, self._marked = Marker(self._project, self._encoder), {}
        tiles: list[int] = []
        if isinstance(self._encoder, TfidfEncoder):  # others take too long
            each = [beliefs.surest(i)[:_TILES] for i in range(beliefs.probs.shape[1])]
            rows = [*each, beliefs.strangest()[:_TILES]]
            tiles = beliefs.images[np.concatenate(rows)].tolist()[:_MOST_TILES]
        self._left = list(dict.fromkeys([*questions, *tiles]))

    def step(self) -> None:
        """Mark a few more texts, and write the file."""
        assert self._marker is not None
        assert self._project.texts is not None
        chunk, self._left = self._left[:CHUNK], self._left[CHUNK:]
        for image in chunk:
            row = self._project.store.image(image)
            if row["problem"] is None and not row["reserved"]:
                text = self._project.texts.text(row["path"])
                self._marked[str(image)] = self._marker.mark(text)
        write_text(self._project.marks_file, json.dumps(self._marked))
