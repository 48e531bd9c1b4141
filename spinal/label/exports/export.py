"""What was labelled, and what the model thinks of the rest, in the forms that others read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinal import networks
from spinal.circuits import Circuit
from spinal.data import Skipped
from spinal.encoders import FeatureCache, build_fine_tuned, load_backbone
from spinal.errors import DataError, FileFormatError, SpinalError, suggestion
from spinal.files import write_text
from spinal.label.exports import standalone
from spinal.label.exports.classifier import FILE, TRUNK, ImageClassifier
from spinal.label.exports.formats import FORMATS, Labels
from spinal.label.store.kinds import parse_network
from spinal.label.store.project import Project, find_images
from spinal.networks import NetworkError

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the model says about N images that could be read.

    Attributes:
        paths: the images.
        classes: names of the C classes.
        probabilities: ``[N, C]``.
        log_density: how usual each image is, ``[N]``.
        skipped: images that could not be read.
    """

    paths: list[Path]
    classes: tuple[str, ...]
    probabilities: NDArray[np.float32]
    log_density: NDArray[np.float32]
    skipped: list[Skipped]

    def table(self, names: Sequence[str]) -> pd.DataFrame:
        """A row for each image, under the given names: class, confidence, entropy and the rest."""
        p = self.probabilities
        uncertainty = -(p * np.log(np.maximum(p, 1e-30))).sum(1)  # entropy, in nats
        columns = {
            "path": list(names),
            "predicted": [self.classes[i] for i in p.argmax(1)],
            "confidence": p.max(1),
            "uncertainty": uncertainty,
            "log_density": self.log_density,
        }
        columns |= {f"p({name})": p[:, i] for i, name in enumerate(self.classes)}
        return pd.DataFrame(columns)


def export(
    project: Project,
    to: str,
    out: Path | None = None,
    *,
    predictions: bool = False,
    on_progress: Progress | None = None,
) -> list[Path]:
    """Write the labels of a project.

    Args:
        project: whose.
        to: the name of a CSV file, or one of `FORMATS`.
        out: the file or folder to write; by default, the format's own name, here.
        predictions: add what the model says about images that have no label.
        on_progress: called with the number of images that have features, and of all.

    Returns:
        What was written.
    """
    name = "csv" if to.endswith(".csv") else to
    if name not in FORMATS:
        known = ["labels.csv", *(each for each in FORMATS if each != "csv"), "model"]
        raise SpinalError(f"no format {to!r}: {suggestion(to, known)}")
    target = out or Path(to if to.endswith(".csv") else FORMATS[name].default)
    labels = labels_of(project)
    if predictions:
        labels = replace(labels, predicted=predict_rest(project, on_progress))
    elif not len(labels.given):
        raise SpinalError(f"{project.home}: no labels yet (spinal label {project.folder})")
    target.parent.mkdir(parents=True, exist_ok=True)
    return FORMATS[name].write(labels, target)


def export_model(project: Project, folder: Path) -> list[Path]:
    """Write the newest classifier: safetensors with a module of its own to read it, and ONNX.

    Raises:
        ExportError: if the packages for ONNX are missing; the rest is written before.
    """
    classifier = load_classifier(project)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in (FILE, "standalone.py", "classifier.onnx")]
    if classifier.has_own_trunk:
        written.append(folder / TRUNK)
    classifier.save(written[0])
    write_text(written[1], Path(standalone.__file__).read_text(encoding="utf-8"))
    classifier.to_onnx(written[2])
    return written


def labels_of(project: Project) -> Labels:
    """What people agree on: a row for each image, with the last answer that says so."""
    last = {
        (row["image"], row["label"]): row
        for row in project.store.answers()
        if row["undone"] is None
    }
    rows = []
    for image in project.store.labelled():
        answer = last[image["id"], image["label"]]
        rows.append(
            {
                "path": image["path"],
                "label": image["label"],
                "person": answer["person"],
                "at": answer["at"],
                "round": answer["round"],
                "reason": answer["reason"],
                "holdout": bool(image["holdout"]),
            }
        )
    columns = ["path", "label", "person", "at", "round", "reason", "holdout"]
    return Labels(project.folder, project.settings.classes, pd.DataFrame(rows, columns=columns))


def load_classifier(project: Project) -> ImageClassifier:
    """The newest classifier of a project.

    Raises:
        SpinalError: if there is none yet.
    """
    folder = project.model_folder
    if not (folder / "network.safetensors").is_file():
        raise SpinalError(
            f"{project.home}: holds no model yet: one is made once "
            f"{project.settings.first_answers} images are labelled (spinal label {project.folder})"
        )
    circuit = Circuit.load(folder / "spn.safetensors")
    # Classes that were added since the last fit come last.
    classes = project.settings.classes[: circuit.n_classes]
    try:
        return _restated(project, circuit, classes)
    except (FileFormatError, NetworkError) as error:
        raise SpinalError(
            f"{project.home}: its model is not {project.settings.describe_model()} ({error}); "
            f"spinal label {project.folder} makes it anew"
        ) from error


def _restated(project: Project, circuit: Circuit, classes: Sequence[str]) -> ImageClassifier:
    """The classifier of the network that is kept, and a circuit on it."""
    file = project.model_folder / "network.safetensors"
    name, kind, _ = parse_network(project.settings.network)
    if name == "fine-tuned":
        backbone = load_backbone(project.settings.features)
        network = build_fine_tuned(backbone, circuit.n_classes)
        networks.load_weights(network, file)
        return ImageClassifier.restate_whole(network.eval(), circuit, classes, backbone)
    network = networks.load(file)
    if network.config["name"] != name:
        raise FileFormatError(f"{file}: holds a {network.config['name']}")
    if kind is None:
        backbone = load_backbone(project.settings.features)
        return ImageClassifier.restate(network, circuit, classes, backbone)
    like = project.settings.network.removesuffix(f"@{kind.size}")
    return ImageClassifier.restate_whole(network, circuit, classes, like)


def predict(
    project: Project, paths: Sequence[Path], on_progress: Progress | None = None
) -> Predictions:
    """Predict image files, of the project or not.

    Their features are kept in the project, unless the next fit would make them worthless.
    """
    classifier = load_classifier(project)
    with tempfile.TemporaryDirectory() as passing:
        place = Path(passing) if classifier.has_own_trunk else project.features_folder
        cache = FeatureCache(place, classifier.backbone)
        try:
            skipped = cache.compute(paths, on_progress)
            points, there = cache.points(paths)
            probabilities, log_density = classifier.predict(points)
        finally:
            cache.close()
    read = [path for path, known in zip(paths, there, strict=True) if known]
    return Predictions(read, classifier.classes, probabilities, log_density, skipped)


def predict_rest(project: Project, on_progress: Progress | None = None) -> pd.DataFrame:
    """The table of predictions for all images of a project that have no agreed label, by name."""
    paths: dict[Path, str] = {}
    for row in project.store.images():
        if row["label"] is None and row["problem"] is None:
            try:
                paths[project.path(row["path"])] = row["path"]
            except DataError:  # gone, or a link that leads out: the next scan will note it
                continue
    predictions = predict(project, list(paths), on_progress)
    return predictions.table([paths[path] for path in predictions.paths])


def images_in(places: Iterable[Path]) -> list[Path]:
    """Image files: those that are named, and all in the folders that are."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = [place / name for name in find_images(place)]
            if not inside:
                raise DataError(f"{place}: no images in it")
            found += inside
        elif place.is_file():
            found.append(place)
        else:
            raise DataError(f"{place}: no such file or folder")
    return found
