r"""When to stop: a forecast of the predictions that further labels would change.

Successive models predict the same unlabelled points. Between a model from :math:`n_i` labels and a
later one from :math:`n_j`, a share :math:`d_{ij}` of the predicted classes changes. It grows with
the share of new labels, and shrinks with the number of labels,

.. math::
    \log d_{ij} \approx a + b \log \frac{n_j - n_i}{n_j} + c \log n_j .

The line is fitted to all pairs of models by least squares, with a penalty on the distance of b and
c from their values on other data. The forecast is its value at :math:`n + m` labels, m of them new.
The interval has the spread of the residuals, plus a margin, since a forecast is less certain than a
fit.

Cohen's kappa is the agreement of two models beyond chance, at most 1. A common rule is to stop when
it has been at least .99 three times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.files import read_arrays, write_arrays

#: Number of models that a forecast needs.
LEAST_MODELS = 3
#: b and c on two sets of features; see ``results/advice.md``. They count as much as one model.
_USUAL = np.array([0.7, -0.3])
#: Standard deviation of the logarithm of a forecast, in addition to the spread of the residuals.
_DOUBT = 0.15
#: Quantile of the normal distribution, for an interval of 80 %.
_WIDTH = 1.2816


@dataclass(frozen=True)
class Advice:
    """What more labels would change.

    Attributes:
        labels: number of labels so far.
        more: number of further labels in the forecast.
        changes: the share of predictions that they would change.
        low: lower limit of that share, with a confidence of 80 %.
        high: upper limit.
        kappa: agreement of the last two models.
    """

    labels: int
    more: int
    changes: float
    low: float
    high: float
    kappa: float

    def __str__(self) -> str:
        return (
            f"another {self.more} labels would change about {self.changes:.1%} of the predictions "
            f"({self.low:.1%} to {self.high:.1%})"
        )


def cohen_kappa(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Agreement of two predictions ``[P]`` beyond chance, at most 1."""
    same = float(np.mean(first == second))
    numbers = np.unique(np.concatenate([first, second]), return_inverse=True)[1].reshape(2, -1)
    shares = (np.bincount(x, minlength=numbers.max() + 1) / len(x) for x in numbers)
    by_chance = float(np.prod(list(shares), axis=0).sum())
    return 1.0 if by_chance == 1 else (same - by_chance) / (1 - by_chance)


def forecast(
    labels: NDArray[np.int64], predictions: NDArray[np.int64], more: int = 50
) -> Advice | None:
    """The forecast from the history of a learner.

    Args:
        labels: numbers of labels of T models, ascending, ``[T]``.
        predictions: classes that they predict for the same P points, ``[T, P]``.
        more: number of further labels.

    Returns:
        The forecast; None for fewer than `LEAST_MODELS` models.
    """
    if len(labels) < LEAST_MODELS or not predictions.shape[1]:
        return None
    i, j = np.triu_indices(len(labels), 1)
    # Half a prediction is added, so that the logarithm of a share of 0 is finite.
    changed = ((predictions[i] != predictions[j]).sum(1) + 0.5) / (predictions.shape[1] + 1)
    total = labels[-1] + more
    share = np.log((labels[j] - labels[i]) / labels[j]) - np.log(more / total)
    design = np.column_stack([np.ones(len(i)), share, np.log(labels[j] / total)])
    weight = len(labels) / len(i)  # all pairs together count as much as all models
    penalty = np.array([0.0, 1.0, 1.0])
    solution = np.linalg.solve(
        weight * design.T @ design + np.diag(penalty),
        weight * design.T @ np.log(changed) + penalty * np.append(0, _USUAL),
    )
    spread = np.sqrt(np.mean((np.log(changed) - design @ solution) ** 2) + _DOUBT**2)
    low, middle, high = np.exp(solution[0] + spread * np.array([-_WIDTH, 0, _WIDTH])).clip(max=1)
    kappa = cohen_kappa(predictions[-2], predictions[-1])
    return Advice(int(labels[-1]), more, float(middle), float(low), float(high), kappa)


@dataclass(frozen=True, eq=False)
class History:
    """Predictions of successive models for the same P points.

    Attributes:
        points: indices of the points, ``[P]``.
        labels: number of labels of each of T models, ascending, ``[T]``.
        predictions: the predicted classes, ``[T, P]``.
    """

    points: NDArray[np.int64]
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]

    @classmethod
    def begin(cls, points: NDArray[np.int64]) -> History:
        """A history without models."""
        return cls(points, np.empty(0, np.int64), np.empty((0, len(points)), np.int64))

    def add(self, labels: int, predictions: NDArray[np.int64]) -> History:
        """The history with one more model; models with as many labels or more are removed."""
        fewer = self.labels < labels
        return replace(
            self,
            labels=np.append(self.labels[fewer], labels),
            predictions=np.vstack([self.predictions[fewer], predictions]),
        )

    def save(self, path: Path) -> None:
        """Write a ``.npz`` file, atomically."""
        write_arrays(path, vars(self))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read a file that `save` wrote."""
        return cls(**read_arrays(path, ("points", "labels", "predictions")))

    def advice(self, labelled: NDArray[np.int64], more: int = 50) -> Advice | None:
        """The forecast for the points that are not in ``labelled``."""
        left = ~np.isin(self.points, labelled)
        return forecast(self.labels, self.predictions[:, left], more)
