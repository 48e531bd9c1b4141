"""Uncertainty and density of points under a learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


@dataclass(frozen=True, eq=False)
class Assessment:
    """Uncertainty and density of N points.

    Attributes:
        uncertainty: entropy of the class probabilities, in nats, ``[N]``.
        margin: difference between the two highest class probabilities, from 0 (undecided) to 1,
            ``[N]``.
        log_density: ``log p(z)`` of the features, ``[N]``: low for points that differ from the
            labelled ones. None if the method has no density.
    """

    uncertainty: NDArray[np.float32]
    margin: NDArray[np.float32]
    log_density: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidates of the last `ActiveLearner.ask`, and which of them were chosen.

    Attributes:
        indices: the candidates, as indices of the pool, ``[N]``.
        chosen: positions in ``indices`` of the chosen points, best first.
        uncertainty: entropy of the candidates' class probabilities, in nats, ``[N]``.
        log_density: ``log p(z)`` of their features, ``[N]``; None if the method has no density.
    """

    indices: NDArray[np.int64]
    chosen: NDArray[np.int64]
    uncertainty: NDArray[np.float64]
    log_density: NDArray[np.float32] | None

    def summary(self) -> dict[str, Any]:
        """Compare the chosen points with all candidates.

        Returns:
            The mean entropy of the chosen points, quantiles of the entropy of all candidates, and
            the mean rank of the chosen points in entropy and in density, from 0 (lowest) to 1.
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
