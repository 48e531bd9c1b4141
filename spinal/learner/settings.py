"""Settings and errors of the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spinal.errors import SpinalError
from spinal.networks import TUNED, TrainSettings


class PoolDryError(SpinalError):
    """There is nothing left to ask: every point is labelled, or was asked."""


class NotFittedError(SpinalError):
    """The learner was asked for something that it has to be fitted for."""


@dataclass(frozen=True)
class LearnerSettings:
    """The settings of an `ActiveLearner` beside its network, posterior and acquisition function.

    Attributes:
        method: a name from `spinal.methods.METHODS`.
        training: how the network is trained.
        retrain: every fit from ``scratch``, or ``continue`` from the last one.
        candidates: assess only so many points of the pool, drawn anew each time; None: all.
        seed: the source of all randomness. Same seed, same labels: same picks.
    """

    method: str = "spn-cnn"
    training: TrainSettings = TUNED
    retrain: Literal["scratch", "continue"] = "scratch"
    candidates: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.retrain not in ("scratch", "continue"):
            raise SpinalError(f"retrain is 'scratch' or 'continue', not {self.retrain!r}")
        if self.candidates is not None and self.candidates < 1:
            raise SpinalError(f"candidates must be 1 or more, not {self.candidates}")
