"""The paper's circuit in spinal."""

from __future__ import annotations

import numpy as np
import torch
from parameters import CLASSES, Parameters
from torch import Tensor
from torch.nn.functional import cross_entropy

from spinal.circuits import DGCSPN

VERSIONS = {"torch": torch.__version__}


class Contender:
    """A circuit with the given parameters, and Adam."""

    def __init__(self, grid: tuple[int, int], parameters: Parameters) -> None:
        torch.set_num_threads(1)
        self.spn = DGCSPN(grid, CLASSES)
        set_parameters(self.spn, parameters)
        self.adam = torch.optim.Adam(self.spn.parameters(), lr=1e-3, fused=True)

    def prepare(self, z: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        """Points and labels in the library's own arrays."""
        return torch.from_numpy(z), torch.from_numpy(y)

    def parity(self, z: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """``log p(z, c)``, and the derivative of the loss by the locations ``[H W, K]``."""
        self.spn.zero_grad()
        log_joint = self.spn(z)
        cross_entropy(log_joint, y).backward()
        location = self.spn.leaves.location
        gradient = torch.empty_like(location)
        gradient[self.spn.leaves.variables.flatten()] = location.grad
        return log_joint.detach().numpy(), gradient.numpy()

    @torch.no_grad()
    def forward(self, z: Tensor, y: Tensor) -> None:
        """Evaluate ``log p(z, c)``."""
        self.spn(z)

    def step(self, z: Tensor, y: Tensor) -> None:
        """Forward, backward, Adam."""
        self.adam.zero_grad()
        cross_entropy(self.spn.class_values(z)[0], y).backward()
        self.adam.step()


@torch.no_grad()
def set_parameters(spn: DGCSPN, parameters: Parameters) -> None:
    """Give a circuit these parameters: slots of the leaves are ordered by region."""
    by_variable = parameters.location.reshape(spn.n_features, -1)
    spn.leaves.location.copy_(torch.tensor(by_variable)[spn.leaves.variables.flatten()])
    for layer, weights in zip(spn.layers, parameters.weights, strict=True):
        layer.sum.set_weights(torch.tensor(weights).flatten(0, 1))
    spn.set_prior(torch.tensor(parameters.prior))
