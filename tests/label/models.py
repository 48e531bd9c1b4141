"""Projects with labels and a model, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spinal import ActiveLearner, Pool
from spinal.encoders import FeatureCache, load_encoder
from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from spinal.networks import TrainSettings
from tests.label.files import COLOURS, make_images

CLASSES = tuple(COLOURS)


def make_project(folder: Path, images: int = 30, labelled: int = 18) -> tuple[Project, dict]:
    """A project whose first images are labelled, rightly; and the class of each image."""
    labels = make_images(folder, images)
    project = open_project(folder, classes=CLASSES, encoder="pixels@4", seed=1)
    project.scan()
    for row in project.store.images()[:labelled]:
        answer = Answer(f"token-{row['id']}", row["id"], labels[row["path"]])
        project.store.answer([answer], "ann")
    return project, labels


def fit_model(project: Project) -> ActiveLearner:
    """Fit a learner on what is labelled, and keep it where the project keeps it."""
    rows = project.store.images()
    cache = FeatureCache(project.features_folder, load_encoder("pixels@4", device="cpu"))
    paths = [project.path(row["path"]) for row in rows]
    cache.compute(paths)
    points, _ = cache.points(paths)
    learner = ActiveLearner(
        Pool(points, CLASSES), ("dense", {"width": 0.125}),
        training=TrainSettings(min_steps=60, max_steps=60), device="cpu",
    )  # fmt: skip
    known = [i for i, row in enumerate(rows) if row["label"] is not None]
    learner.tell(np.array(known), [rows[i]["label"] for i in known])
    learner.fit()
    learner.save(project.model_folder)
    cache.close()
    return learner
