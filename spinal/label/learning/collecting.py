"""Features of the images or texts of a project, computed a few at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.data import UNLABELLED
from spinal.encoders import FeatureCache, RawImages
from spinal.encoders.images import require_images
from spinal.encoders.vectors import StoredVectors
from spinal.label.learning import rounds
from spinal.label.learning.features import TextCache, feature_cache, project_encoder
from spinal.label.learning.guarded import guard
from spinal.label.learning.likeness import Likeness
from spinal.label.learning.sets import UNKNOWN
from spinal.label.store.networks import parse_network
from spinal.label.store.project import Project
from spinal.label.store.sets import from_text
from spinal.label.store.settings import ProjectSettings

Say = Callable[[dict[str, Any]], None]


class ProjectFeatures:
    """The features of a project: which images have features, and which do not.

    Args:
        project: the project.
        say: called with the status.

    Attributes:
        encoder: computes the features.
        cache: the features on disk.
        pictures: small copies of the images, if a network is trained on them.
        fine_tuned: the network that is fine-tuned, if there is one.
        places: the row of the features of each image, by its number.
        missing: numbers and paths of the images without features, in random order.
    """

    def __init__(self, project: Project, say: Say) -> None:
        self.project, self.store, self.say = project, project.store, say
        # Texts are identified by their name alone.
        self._root = project.folder.resolve() if project.texts is None else Path()
        self.encoder = project_encoder(project)
        self.cache = feature_cache(project, self.encoder)
        name, whole, size = parse_network(project.settings.network)
        self.fine_tuned = require_images(self.encoder) if name == "fine-tuned" else None
        if self.fine_tuned is not None:
            self._raw: RawImages | None = self.fine_tuned.as_raw_images()
        else:
            self._raw = None if whole is None else RawImages(size)
        self.pictures: FeatureCache | None = None
        if self._raw is not None:
            self.pictures = FeatureCache(
                project.features_folder, guard(self._raw, project.previews.decoders),
                dtype=np.uint8, threads=1,
            )  # fmt: skip
        for cache in (self.cache, self.pictures):
            if cache is not None:
                cache.vectors.repair()
        self.places: dict[int, int] = {}
        self._picture_places: dict[int, int] = {}  # the same, in `pictures`
        self.missing: list[tuple[int, str]] = []

    def find_missing(self) -> None:
        """Find images without features, in random order."""
        rows = [
            row for row in self.store.images()
            if row["problem"] is None and row["twin"] is None and row["id"] not in self.places
        ]  # fmt: skip
        self._note_features([(row["id"], row["path"]) for row in rows])
        left = [(r["id"], r["path"]) for r in rows if r["id"] not in self.places]
        order = np.random.default_rng(self.project.settings.seed).permutation(len(left))
        self.missing = [left[i] for i in order]
        if not left:
            self.note_likeness()

    def _note_features(self, images: list[tuple[int, str]]) -> None:
        places = _places(self.cache, self._root, images)
        if self.pictures is not None:
            copies = _places(self.pictures, self._root, images)
            self._picture_places |= copies
            places = {number: place for number, place in places.items() if number in copies}
        self.places |= places

    def compute_some(self, n: int, should_stop: Callable[[], bool]) -> None:
        """Compute features of ``n`` more images, those with an answer first."""
        answered = {row["id"] for row in self.store.labelled()}
        self.missing.sort(key=lambda image: image[0] not in answered)  # stable: otherwise unchanged
        chunk, self.missing = self.missing[:n], self.missing[n:]
        refused = self.compute(
            chunk, len(self.places) + len(self.missing) + len(chunk), should_stop
        )
        left = [image for image in chunk if image[0] not in self.places and image[1] not in refused]
        self.missing = left + self.missing
        if not self.missing:
            self.note_likeness()

    def note_likeness(self) -> None:
        """Record where the features of each image are stored."""
        images = np.array(sorted(self.places), np.int64)
        places = np.array([self.places[image] for image in images.tolist()], np.int64)
        vectors = self.cache.vectors
        Likeness(images, places, vectors.width, vectors.file).save(self.project.likeness_file)

    def compute_all(self) -> None:
        """Compute features of all images."""
        missing, self.missing = self.missing, []
        self.compute(missing, len(self.places) + len(missing))

    def compute(
        self,
        chunk: list[tuple[int, str]],
        total: int,
        should_stop: Callable[[], bool] | None = None,
    ) -> set[str]:
        """Compute features of some images, and return the paths of those that cannot be used."""
        done = len(self.places)
        self.project.check([path for _, path in chunk])
        refused = {row["path"] for row in self.store.problems()}
        paths = {self._root / path: path for _, path in chunk if path not in refused}
        skipped = self.cache.compute(
            paths,
            on_progress=lambda n, _: self.say(
                {"state": "features", "done": done + n, "total": total}
            ),
            should_stop=should_stop,
        )
        if self.pictures is not None:
            skipped += self.pictures.compute(paths, should_stop=should_stop)
        for file in skipped:
            self.project.refuse(paths[file.path], file.reason)
        self._note_features(chunk)
        return refused | {paths[file.path] for file in skipped}

    def snapshot(self, settings: ProjectSettings) -> rounds.Snapshot:
        """The images with features; labels are numbers of the classes in ``settings``."""
        number = {name: i for i, name in enumerate(settings.classes)}
        rows = [r for r in self.store.images() if r["id"] in self.places and r["twin"] is None]
        places = np.array([self.places[row["id"]] for row in rows], np.int64)
        pictures = None
        if self.pictures is not None and self._raw is not None:
            at = np.array([self._picture_places[row["id"]] for row in rows], np.int64)
            shape = (self._raw.size, self._raw.size, 3)
            pictures = StoredVectors(self.pictures.vectors, at, shape)
        labels = np.array([number.get(row["label"], UNLABELLED) for row in rows], np.int64)
        if settings.multi:
            labels = self._sets(rows, settings.classes)

        def flags(name: str) -> NDArray[np.bool_]:
            return np.array([bool(row[name]) for row in rows], bool)

        shut = flags("label") | flags("skipped") | flags("disputed") | flags("problem")
        return rounds.Snapshot(
            np.array([row["id"] for row in rows], np.int64),
            StoredVectors(self.cache.vectors, places),
            labels,
            flags("reserved"),
            ~shut,
            pictures,
        )

    def _sets(self, rows: list[sqlite3.Row], classes: Sequence[str]) -> NDArray[np.int64]:
        """For each image and class, 1 if present, 0 if absent, -1 if unknown, ``[N, C]``."""
        unsaid = self.store.unsaid()
        sets = np.full((len(rows), len(classes)), UNKNOWN, np.int64)
        for i, row in enumerate(rows):
            if row["label"] is not None:
                names, silent = from_text(row["label"]), unsaid.get(row["id"], ())
                sets[i] = [UNKNOWN if name in silent else name in names for name in classes]
        return sets


def _places(
    cache: FeatureCache | TextCache, root: Path, images: list[tuple[int, str]]
) -> dict[int, int]:
    """For each image in a cache, its row there, by image number."""
    points, is_stored = cache.points([root / path for _, path in images])
    numbers = [number for (number, _), stored in zip(images, is_stored, strict=True) if stored]
    return dict(zip(numbers, points.places.tolist(), strict=True))
