"""Preprocessing: from stored points to the input of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from spinal.data.inputs import as_points
from spinal.data.points import Points, iter_batches
from spinal.errors import DataError

#: Number of points that mean and standard deviation are computed from.
SAMPLE = 2000


class Preprocess(nn.Module):
    """Scales images to 0..1, standardises each channel (or feature), and moves channels first.

    Mean and standard deviation are computed once, by `fit`, and then belong to the network's state:
    a point gives the same input in every round.

    Args:
        input_shape: shape of one point, (H, W, C) or (D,), checked for every batch; None allows
            any.

    Attributes:
        fills_missing: whether a missing feature (NaN) is replaced by the mean; otherwise it is an
            error.
    """

    mean: Tensor
    std: Tensor
    fitted: Tensor

    def __init__(self, input_shape: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.fills_missing = False
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("std", torch.ones(1))
        self.register_buffer("fitted", torch.tensor(False))

    def fit(self, points: NDArray | Points) -> None:
        """Compute mean and standard deviation from at most `SAMPLE` points, evenly spread over all.

        No labels are needed, so ``points`` can be the complete pool, which gives better estimates
        than the few labelled points.
        """
        points = as_points(points)
        indices = np.linspace(0, len(points) - 1, min(len(points), SAMPLE)).astype(np.int64)
        rows, totals, squares = np.zeros(1), np.zeros(1), np.zeros(1)
        for batch in iter_batches(points, indices):
            values = batch.reshape(-1, batch.shape[-1]).astype(np.float64)
            values = values / 255 if batch.ndim == 4 else values
            rows = rows + (~np.isnan(values)).sum(0)
            totals = totals + np.nansum(values, 0)
            squares = squares + np.nansum(values**2, 0)
        rows = np.maximum(rows, 1)
        mean = totals / rows
        std = np.sqrt(np.maximum(squares / rows - mean**2, 0))
        std[std < 1e-6 * np.maximum(1, abs(mean))] = 1  # constant: not scaled
        self.set(mean, std)

    def set(self, mean: ArrayLike, std: ArrayLike) -> None:
        """Set mean and standard deviation of each channel (in units of 0..1) or feature."""
        device = self.mean.device
        self.mean = torch.tensor(np.asarray(mean), dtype=self.mean.dtype).to(device)
        self.std = torch.tensor(np.asarray(std), dtype=self.std.dtype).to(device)
        self.fitted.fill_(True)

    def forward(self, batch: NDArray | Tensor) -> Tensor:
        """uint8 ``[N, H, W, C]`` to ``[N, C, H, W]``, or features ``[N, D]`` to ``[N, D]``."""
        x = torch.as_tensor(batch)
        if x.ndim == 2:
            x = x.to(self.mean.dtype)  # before moving: not every device supports float64
        x = x.to(self.mean.device)
        if self.input_shape is not None and tuple(x.shape[1:]) != self.input_shape:
            raise DataError(
                f"points of shape {tuple(x.shape[1:])}, but the network is for {self.input_shape}"
            )
        if x.ndim == 4 and x.dtype == torch.uint8:
            x = x.to(self.mean.dtype).div_(255)
        elif x.ndim != 2:
            raise DataError(
                f"a batch of shape {tuple(x.shape)} and type {x.dtype}: give uint8 images, "
                "(N, H, W, C), or features, (N, D)"
            )
        if len(self.mean) not in (1, x.size(-1)):
            raise DataError(
                f"points with {x.size(-1)} channels or features, but the network was standardised "
                f"with {len(self.mean)}"
            )
        x = (x - self.mean) / self.std
        return x.permute(0, 3, 1, 2) if x.ndim == 4 else self._without_missing(x)

    def _without_missing(self, x: Tensor) -> Tensor:
        """Standardised features ``[N, D]``; missing features are set to 0, which is the mean."""
        missing = x.isnan()
        if not missing.any():
            return x
        if not self.fills_missing:
            raise DataError(
                f"{int(missing.any(1).sum())} of {len(x)} points have missing features (NaN), "
                "which this method cannot leave out: take one that can, such as "
                "method=spinal.SPNClassifier(), or fill them in"
            )
        return x.masked_fill(missing, 0)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Adopt the saved shapes, which are unknown before `fit`."""
        for name in ("mean", "std"):
            saved = state_dict.get(prefix + name)
            if saved is not None:
                setattr(self, name, torch.empty_like(saved, device=self.mean.device))
        super()._load_from_state_dict(state_dict, prefix, *args)
