"""Settings and errors of the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spinal.errors import SpinalError
from spinal.networks import TUNED, TrainSettings


class PoolDryError(SpinalError):
    """Every point of the pool is labelled or already asked."""


class NotFittedError(SpinalError):
    """The learner has to be fitted before this call."""


@dataclass(frozen=True)
class LearnerSettings:
    """The settings of an `ActiveLearner`, without the settings of its parts.

    Attributes:
        method: a name from `spinal.methods.METHODS`.
        training: how the network is trained.
        retrain: whether each fit starts from ``scratch`` or continues from the last one
            (``continue``).
        candidates: the maximum number of points that `ActiveLearner.ask` assesses, drawn at random
            each time; None for all.
        learn_from: the ``labels`` only, or also the other points of the ``pool``, if they make
            held-out labelled points more likely. An SPN without a recipe, on vectors with a single
            dense layer, learns from the pool directly. In all other cases the network learns from
            pseudo-labels, which takes at least four times as long. None means the pool if the
            posterior learns from it directly.
        seed: for all randomness. With the same seed and labels, the same points are asked.
    """

    method: str = "spn-cnn"
    training: TrainSettings = TUNED
    retrain: Literal["scratch", "continue"] = "scratch"
    candidates: int | None = None
    learn_from: Literal["pool", "labels"] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.retrain not in ("scratch", "continue"):
            raise SpinalError(f"retrain is 'scratch' or 'continue', not {self.retrain!r}")
        if self.candidates is not None and self.candidates < 1:
            raise SpinalError(f"candidates must be 1 or more, not {self.candidates}")
        if self.learn_from not in (None, "pool", "labels"):
            raise SpinalError(f"learn_from is 'pool' or 'labels', not {self.learn_from!r}")
