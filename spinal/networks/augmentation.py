"""Small random changes to training images that preserve their class."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Augment = Literal["none", "flip", "shift", "shift-flip"]


def augment(batch: Tensor, kind: Augment, generator: torch.Generator) -> Tensor:
    """Mirror half of the images, or shift each by up to an eighth of its sides, or both.

    When an image is shifted, the pixels at its edge are repeated. Feature vectors ``[N, D]`` are
    returned unchanged.

    Args:
        batch: uint8 ``[N, H, W, C]``.
        kind: ``none``, ``flip``, ``shift`` or ``shift-flip``.
        generator: on the CPU.
    """
    if kind == "none" or batch.ndim != 4:
        return batch
    n, height, width, _ = batch.shape
    share = 0 if kind == "flip" else 1 / 8
    rows = _shifted(n, height, share, generator)
    columns = _shifted(n, width, share, generator)
    if kind != "shift":
        flip = torch.rand(n, 1, generator=generator) < 0.5
        columns = torch.where(flip, width - 1 - columns, columns)
    rows, columns = rows.to(batch.device), columns.to(batch.device)
    images = torch.arange(n, device=batch.device)
    return batch[images[:, None, None], rows[:, :, None], columns[:, None, :]]


def cut_out(batch: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Fill a square at a random place in each image with the image's mean colour.

    A square may lie partly outside the image. Feature vectors ``[N, D]`` are returned unchanged.

    Args:
        batch: uint8 ``[N, H, W, C]``.
        share: side of the square, as a share of the shorter side of the images.
        generator: on the CPU.
    """
    if not share or batch.ndim != 4:
        return batch
    n, height, width, _ = batch.shape
    side = round(share * min(height, width))
    inside = (
        _band(n, height, side, generator)[:, :, None] & _band(n, width, side, generator)[:, None]
    )
    colour = batch.float().mean((1, 2), keepdim=True).to(batch.dtype)
    return torch.where(inside[..., None].to(batch.device), colour, batch)


def _band(n: int, size: int, side: int, generator: torch.Generator) -> Tensor:
    """Which of 0..size-1 lie in a random interval of ``side``, for n images: ``[n, size]``."""
    start = torch.randint(size, (n, 1), generator=generator) - side // 2
    positions = torch.arange(size)
    return (positions >= start) & (positions < start + side)


def _shifted(n: int, size: int, share: float, generator: torch.Generator) -> Tensor:
    """The positions 0..size-1, shifted at random for each of n images, clamped: ``[n, size]``."""
    most = int(share * size)
    moves = torch.randint(-most, most + 1, (n, 1), generator=generator)
    return (torch.arange(size) + moves).clamp(0, size - 1)
