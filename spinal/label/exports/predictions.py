"""Predictions of the newest model of a project for images."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinal.data import Skipped
from spinal.encoders import FeatureCache
from spinal.errors import DataError
from spinal.label.exports.fitted import load_classifier
from spinal.label.learning.guarded import guard
from spinal.label.learning.sets import confidence, predicted
from spinal.label.store.finding import find_images
from spinal.label.store.project import Project
from spinal.label.store.sets import join

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for N images that could be read.

    Attributes:
        paths: the images.
        classes: names of the C classes.
        probabilities: ``[N, C]``.
        log_density: log-density of each image, ``[N]``; low for unusual images.
        skipped: images that could not be read.
        multi: whether an image can have several classes; see `spinal.label.learning.sets`.
    """

    paths: list[Path]
    classes: tuple[str, ...]
    probabilities: NDArray[np.float32]
    log_density: NDArray[np.float32]
    skipped: list[Skipped]
    multi: bool = False

    def table(self, names: Sequence[str]) -> pd.DataFrame:
        """A table with a row for each image, called by these names; see `Labels.predicted`."""
        p = self.probabilities
        predictions, sure, uncertainty = (
            [self.classes[i] for i in p.argmax(1)],
            p.max(1),
            entropy(p),
        )
        if self.multi:
            sets = predicted(p)
            predictions = [join(np.array(self.classes, object)[row]) for row in sets]
            sure, uncertainty = confidence(p), entropy(p) + entropy(1 - p)
        columns = {
            "path": list(names),
            "predicted": predictions,
            "confidence": sure,
            "uncertainty": uncertainty,
            "log_density": self.log_density,
        }
        columns |= {f"p({name})": p[:, i] for i, name in enumerate(self.classes)}
        return pd.DataFrame(columns)


def entropy(p: NDArray[np.float32]) -> NDArray[np.float32]:
    """The entropy in nats, ``[N]``, of probabilities ``[N, C]``."""
    return -(p * np.log(np.maximum(p, 1e-30))).sum(1)


def predict(
    project: Project, paths: Sequence[Path], on_progress: Progress | None = None
) -> Predictions:
    """Predict image files, which need not belong to the project.

    Their features are stored in the project, unless the encoder changes with each fit.
    """
    classifier = load_classifier(project)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) if classifier.has_own_trunk else project.features_folder
        encoder = guard(classifier.encoder, project.previews.decoders)
        cache = FeatureCache(place, encoder)
        try:
            skipped = cache.compute(paths, on_progress)
            points, there = cache.points(paths)
            probabilities, log_density = classifier.predict(points)
        finally:
            cache.close()
    read = [path for path, known in zip(paths, there, strict=True) if known]
    multi = project.settings.multi
    return Predictions(read, classifier.classes, probabilities, log_density, skipped, multi)


def predict_rest(project: Project, on_progress: Progress | None = None) -> pd.DataFrame:
    """The table of predictions for all images of a project without an agreed label."""
    paths: dict[Path, str] = {}
    for row in project.store.images():
        if row["label"] is None and row["problem"] is None:
            try:
                paths[project.path(row["path"])] = row["path"]
            except DataError:  # missing, or a link out of the folder: the next scan records it
                continue
    predictions = predict(project, list(paths), on_progress)
    return predictions.table([paths[path] for path in predictions.paths])


def images_in(places: Iterable[Path]) -> list[Path]:
    """The image files among these paths, and all image files in the folders among them."""
    paths: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = [place / name for name in find_images(place)]
            if not inside:
                raise DataError(f"{place}: no images in it")
            paths += inside
        elif place.is_file():
            paths.append(place)
        else:
            raise DataError(f"{place}: no such file or folder")
    return paths
