"""The DGC-SPN of the paper in numbers: layer shapes, and parameters drawn from a seed.

Runs in every environment of the comparison, so it needs numpy alone. Draws come from `RandomState`,
whose stream numpy keeps the same for good: a seed stands for half a million weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLASSES = 10
LEAVES = 16
STRIDED_SUMS = (16, 32)
DILATED_SUMS = (32, 64, 64)
FINAL_DILATION = 8

#: Standard deviation of the logits: the order of cells and channels shows in the values, and no
#: weight falls below the floors that spinal puts under them.
SPREAD = 2.0


@dataclass(frozen=True)
class Parameters:
    """Locations ``[H, W, K]``, weights of each sum ``[A, B, I, O]``, root last, and a class prior.

    Cells are row by row. The root's cells are those of a final product padded at the end, where
    cell ``i`` joins ``i`` and ``i + 8``. Scales are 1.
    """

    location: np.ndarray
    weights: list[np.ndarray]
    prior: np.ndarray


def sum_shapes(grid: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """``(A, B, inputs, outputs)`` of every sum layer; the last is the root."""
    rows, columns = grid
    inputs, shapes = LEAVES, []
    for outputs in STRIDED_SUMS:
        rows, columns = rows // 2, columns // 2
        shapes.append((rows, columns, inputs, outputs))
        inputs = outputs
    for i, outputs in enumerate(DILATED_SUMS):
        rows, columns = rows + 2**i, columns + 2**i
        shapes.append((rows, columns, inputs, outputs))
        inputs = outputs
    return [*shapes, (FINAL_DILATION, FINAL_DILATION, inputs, CLASSES)]


def draw_parameters(grid: tuple[int, int], seed: int) -> Parameters:
    """Standard normal locations, weights from normal logits; the locations are exact in float32."""
    random = np.random.RandomState(seed)
    location = random.standard_normal((*grid, LEAVES)).astype(np.float32).astype(np.float64)
    *local, root = (SPREAD * random.standard_normal(shape) for shape in sum_shapes(grid))
    weights = [softmax(logits, 2) for logits in local]
    return Parameters(
        location, [*weights, softmax(root, (0, 1, 2))], softmax(random.standard_normal(CLASSES), 0)
    )


def draw_points(grid: tuple[int, int], n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal features ``[N, H W]`` in float32, and random labels ``[N]``."""
    random = np.random.RandomState(seed)
    z = random.standard_normal((n, grid[0] * grid[1])).astype(np.float32)
    return z, random.randint(CLASSES, size=n)


def softmax(logits: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Positive, and adding up to 1 over ``axis``."""
    w = np.exp(logits - logits.max(axis, keepdims=True))
    return w / w.sum(axis, keepdims=True)
