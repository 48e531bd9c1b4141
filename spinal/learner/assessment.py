"""What a learner thinks of points: how unsure it is, and how usual they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


@dataclass(frozen=True, eq=False)
class Assessment:
    """How unsure the learner is of N points, and how usual they are.

    Attributes:
        uncertainty: the entropy of the class probabilities, in nats, ``[N]``.
        margin: between the two most probable classes, from 0 (undecided) to 1, ``[N]``.
        log_density: ``log p(z)`` of the features, ``[N]``: low for points unlike the labelled ones.
            None if the method has no density.
    """

    uncertainty: NDArray[np.float32]
    margin: NDArray[np.float32]
    log_density: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Choice:
    """What the learner went by when it was last asked.

    Attributes:
        indices: the points that it chose from, ``[N]``.
        chosen: rows of ``indices`` that it chose, best first.
        uncertainty: the entropy of their class probabilities, in nats, ``[N]``.
        log_density: how usual they are, ``[N]``; None if the method has no density.
    """

    indices: NDArray[np.int64]
    chosen: NDArray[np.int64]
    uncertainty: NDArray[np.float64]
    log_density: NDArray[np.float32] | None

    def summary(self) -> dict[str, Any]:
        """The picks against the pool.

        Returns:
            The mean entropy of the picks, quantiles of the entropy in the pool, and the mean rank
            of the picks in entropy and in density, from 0 (lowest of all) to 1.
        """
        levels = np.quantile(self.uncertainty, (0.05, 0.25, 0.5, 0.75, 0.95))
        summary = {
            "entropy": float(self.uncertainty[self.chosen].mean()),
            "entropy_rank": self._rank(self.uncertainty),
            "pool_entropy": [round(float(level), 4) for level in levels],
        }
        if self.log_density is not None:
            summary["density_rank"] = self._rank(self.log_density)
        return summary

    def _rank(self, values: NDArray) -> float:
        return float((rankdata(values)[self.chosen].mean() - 1) / max(len(values) - 1, 1))
