"""The input of an acquisition function: arrays with one row for each candidate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from spinal.errors import DataError

#: How far the sum of a point's probabilities may be from 1: enough for values from float16.
_NORMALISED = 1e-3
#: Elements per chunk, to avoid a complete copy of ``[N, K, C]``.
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Candidates:
    """N points to choose from. Fields that the acquisition function does not need are None.

    Shapes: N candidates, K posterior samples, C classes, D features, L labelled points.

    Args:
        log_probs: ``log_probs_N_K_C``: natural logs of class probabilities. Sample k is the same
            model for every point.
        features: Feature vectors, ``[N, D]``.
        labelled_features: Features ``[L, D]`` of the points that are labelled, or asked and not
            labelled yet. L may be 0.
        labelled_log_probs: ``log_probs`` of those points, ``[L, K, C]``.
        moments: Means and variances, ``[N, 2, C]``, of the class probabilities over the posterior,
            if they are known without samples.
        log_density: ``log p(z)``, ``[N]``: low for outliers.
        ids: Distinct integers ``[N]`` that identify points; 0 to N - 1 by default. Random numbers
            and tie breaking depend on them, so the same points in another order give the same
            picks.
        label_probs: For C independent classes, the probability of each, ``[N, C]``. They need not
            sum to 1.
    """

    log_probs: Tensor | None = None
    features: Tensor | None = None
    labelled_features: Tensor | None = None
    moments: Tensor | None = None
    log_density: Tensor | None = None
    ids: Tensor | None = None
    labelled_log_probs: Tensor | None = None
    label_probs: Tensor | None = None

    def __len__(self) -> int:
        """N, the number of candidates."""
        return next((len(array) for _, array in self._rows()), 0)

    def check(self, needs: Iterable[str]) -> None:
        """Raise an error if a needed array is missing or invalid."""
        for name in sorted(needs):
            if getattr(self, name) is None:
                raise DataError(f"this acquisition function needs {name}, which is not given")
        for field in fields(self):
            array = getattr(self, field.name)
            if array is not None:
                _check_array(field.name, array)
        for name, array in self._rows():
            if len(array) != len(self):
                raise DataError(f"{name} has {len(array)} rows where others have {len(self)}")
        rows_L = {
            len(a) for a in (self.labelled_features, self.labelled_log_probs) if a is not None
        }
        if len(rows_L) > 1:
            raise DataError("labelled_features and labelled_log_probs are of different lengths")
        z, labelled = self.features, self.labelled_features
        if z is not None and labelled is not None and z.shape[1] != labelled.shape[1]:
            raise DataError(
                f"{z.shape[1]} features of candidates, {labelled.shape[1]} of labelled points"
            )

    def order(self) -> Tensor:
        """Positions of the candidates by ascending id."""
        if self.ids is None:
            return torch.arange(len(self))
        return self.ids.cpu().argsort()

    def take(self, positions: Tensor) -> Candidates:
        """The candidates at these positions, in this order; not copied if the order is the same."""
        if torch.equal(positions, torch.arange(len(self))):
            return self
        rows = {name: array[positions.to(array.device)] for name, array in self._rows()}
        return replace(self, **rows)

    def _rows(self) -> list[tuple[str, Tensor]]:
        """The given arrays that have one row for each candidate."""
        arrays = ((field.name, getattr(self, field.name)) for field in fields(self))
        return [(name, a) for name, a in arrays if a is not None and "labelled" not in name]


def chunks(log_probs_N_K_C: Tensor) -> Iterable[Tensor]:
    """The same log-probabilities, a few points at a time."""
    points = max(1, _CHUNK // max(1, log_probs_N_K_C[:1].numel()))
    return log_probs_N_K_C.split(points)


def _check_array(name: str, array: Tensor) -> None:
    """Raise an error for an array of the wrong kind, shape or content."""
    if not isinstance(array, Tensor):
        raise DataError(f"{name} is a {type(array).__name__}; give a torch tensor")
    axes = {"log_probs": 3, "labelled_log_probs": 3, "moments": 3, "log_density": 1}.get(name, 2)
    if name == "ids":
        if array.ndim != 1 or array.is_floating_point() or array.is_complex():
            raise DataError(f"ids of type {array.dtype} and shape {_shape(array)}: give integers")
        if len(array.unique()) != len(array):
            raise DataError("two candidates have the same id in ids")
        return
    if not array.is_floating_point() or array.ndim != axes:
        plural = "axis" if axes == 1 else "axes"
        raise DataError(
            f"{name} is {array.dtype} of shape {_shape(array)}; give {axes} {plural}, float"
        )
    if name.endswith("log_probs"):
        _check_log_probs(name, array)
    elif array.numel() and not torch.stack(array.aminmax()).isfinite().all():  # without copies
        raise DataError(f"{name} holds NaN or infinite numbers")


def _check_log_probs(name: str, log_probs_N_K_C: Tensor) -> None:
    _, k, c = log_probs_N_K_C.shape
    if k < 1 or c < 1:
        raise DataError(f"{name} with {k} samples and {c} classes: give at least one each")
    start = 0
    for part in chunks(log_probs_N_K_C):
        total_N_K = part.logsumexp(-1)
        wrong = ~(total_N_K.abs() <= _NORMALISED)  # NaN compares false, so it counts as wrong
        if wrong.any():
            i, j = (int(x) for x in wrong.nonzero()[0])
            total = float(total_N_K[i, j].exp())
            raise DataError(
                f"{name} at point {start + i}, sample {j}: probabilities sum to "
                f"{total:.6g}, not 1. Give natural logs, such as logits.log_softmax(-1)"
            )
        start += len(part)


def _shape(array: Tensor) -> str:
    return " x ".join(map(str, array.shape)) or "one number"
