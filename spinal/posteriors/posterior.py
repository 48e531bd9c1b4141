"""What every posterior has in common: ``p(y | x, labelled data)`` as ``log_probs_N_K_C``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spinal.data import Points
from spinal.errors import SpinalError
from spinal.networks import Network, TrainSettings

#: Points and labels that the best weights of a network are chosen by.
Validation = tuple[NDArray, NDArray]


@dataclass(frozen=True, eq=False)
class View:
    """Some points, as a trained network sees them.

    Attributes:
        network: in which the features were computed.
        points: all points; read in batches.
        indices: which of them, ``[N]``.
        features: their feature vectors, ``[N, F]``: computed once, shared by all that need them.
    """

    network: Network
    points: Points
    indices: NDArray[np.int64]
    features: Tensor

    def __len__(self) -> int:
        return len(self.indices)


class Posterior(ABC):
    """An estimate of class probabilities that plugs into any acquisition function.

    A posterior is fitted after the network, on the labelled points, and is then asked for any
    others. All chance comes from ``seed``.

    Attributes:
        provides: what it can tell of points, as names of fields of `spinal.acquisition.Candidates`.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"log_probs"})

    @abstractmethod
    def fit(
        self,
        labelled: View,
        labels: Tensor,
        classes: int,
        *,
        seed: int,
        on_step: Callable[[int, int, float], None] | None = None,
    ) -> None:
        """Learn from the labelled points.

        Args:
            labelled: the points.
            labels: their classes ``[N]``, from 0 to ``classes - 1``.
            classes: C.
            seed: the source of all chance.
            on_step: called with the step, the number of steps and the loss.
        """

    @abstractmethod
    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        """Natural-log class probabilities ``log_probs_N_K_C``; sample k is one model throughout.

        Args:
            view: the points.
            seed: of the samples.
            samples: False asks for the best single prediction, ``[N, 1, C]``, where that differs.
        """

    def compare_samples(self) -> None:
        """Be told that samples will be compared with each other, so that one is not enough."""
        raise SpinalError(
            f"{type(self).__name__} has a single sample; this acquisition function compares several"
        )

    def train_like(  # noqa: B027  most train no networks
        self,
        training: TrainSettings,
        validation: Validation | None,
        retrain: Literal["scratch", "continue"],
    ) -> None:
        """Be told how the learner trains its network, so that more can be trained in that way."""

    def log_density(self, view: View) -> Tensor | None:
        """How usual each point is, ``log p(z)`` as ``[N]``; None if the posterior cannot tell."""
        return None

    def moments(self, view: View) -> Tensor:
        """Means and variances of class probabilities, ``[N, 2, C]``, if known without samples."""
        raise SpinalError(f"{type(self).__name__} has no moments in closed form")

    def save(self, folder: Path) -> None:  # noqa: B027  most have nothing of their own to keep
        """Keep what `fit` learnt in files of ``folder``."""

    def load(self, folder: Path) -> None:  # noqa: B027
        """Read what `save` wrote."""
