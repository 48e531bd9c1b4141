"""A check of a method and an acquisition function, before anything is labelled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spinal.data import Pool
from spinal.label.learning.rounds import make_learner
from spinal.label.store.settings import ProjectSettings


def check_method(settings: ProjectSettings) -> None:
    """Raise a SpinalError if the method or acquisition function is unknown, or they do not match.

    Args:
        settings: the settings whose method and acquisition function are checked.
    """
    pool = Pool(np.zeros((2, 8), np.float32), settings.classes)
    make_learner(pool, replace(settings, network="dense"), seed=0)
