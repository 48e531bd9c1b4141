"""The worker records where features are, and the nearest by them are of the same colour."""

from __future__ import annotations

import numpy as np

from spinal.label.learning.likeness import Likeness
from spinal.label.learning.worker import Worker
from spinal.label.store.project import Project
from tests.label.people import truth, work


def test_the_nearest_images_have_the_same_colour(project: Project) -> None:
    work(Worker(project, lambda _: None))
    likeness = Likeness.load(project.likeness_file, project.features_folder)
    paths = {row["id"]: row["path"] for row in project.store.images()}
    assert likeness.images.tolist() == sorted(paths)
    for image in likeness.images[:5].tolist():
        others, cosines = likeness.compare(image)
        nearest = others[np.argsort(-cosines)][:10].tolist()
        assert nearest[0] == image
        assert {truth(paths[other]) for other in nearest} == {truth(paths[image])}
