"""The floor: the matrix products of the circuit's sums, and nothing else."""

from __future__ import annotations

import numpy as np
import torch
from parameters import Parameters
from torch import Tensor

VERSIONS = {"torch": torch.__version__}


class Contender:
    """For every sum layer, one product forward and two backward, all cells at once."""

    def __init__(self, grid: tuple[int, int], parameters: Parameters) -> None:
        torch.set_num_threads(1)
        self.weights = [torch.tensor(w).float().flatten(0, 1) for w in parameters.weights]

    def prepare(self, z: np.ndarray, y: np.ndarray) -> tuple[list[Tensor], list[Tensor]]:
        """Children, and derivatives by the sums: ``[A B, N, I]`` and ``[A B, N, O]`` per layer."""
        inputs = [torch.rand(w.size(0), len(z), w.size(1)) for w in self.weights]
        return inputs, [torch.rand(w.size(0), len(z), w.size(2)) for w in self.weights]

    def forward(self, p: list[Tensor], ds: list[Tensor]) -> None:
        """The sums."""
        for x, w in zip(p, self.weights, strict=True):
            torch.bmm(x, w)

    def step(self, p: list[Tensor], ds: list[Tensor]) -> None:
        """The sums, and the derivatives by weights and by children."""
        self.forward(p, ds)
        for x, w, d in zip(p, self.weights, ds, strict=True):
            torch.bmm(x.transpose(1, 2), d)
            torch.bmm(d, w.transpose(1, 2))
