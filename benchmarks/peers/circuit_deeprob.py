"""The paper's circuit from the layers of DeeProb-kit 1.1.0.

Its `DgcSpn` builds square grids with the same number of channels in all sums; the layers it is made
of take any. They have no class prior: it is added here. Their random start fails on grids that are
not square, and is replaced, as the parameters are given.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import torch
from deeprob.spn.layers import dgcspn
from parameters import CLASSES, DILATED_SUMS, FINAL_DILATION, LEAVES, STRIDED_SUMS, Parameters
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

VERSIONS = {name: version(name) for name in ("deeprob-kit", "torch")}


class Contender:
    """A circuit with the given parameters, and Adam."""

    def __init__(self, grid: tuple[int, int], parameters: Parameters) -> None:
        torch.set_num_threads(1)
        self.grid = grid
        self.layers = build(grid, parameters)
        self.log_prior = nn.Parameter(torch.tensor(parameters.prior).log().float())
        parameters_ = [p for p in self.layers.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam([*parameters_, self.log_prior], lr=1e-3, fused=True)

    def prepare(self, z: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        """Points and labels in the library's own arrays."""
        return torch.from_numpy(z).view(-1, 1, *self.grid), torch.from_numpy(y)

    def parity(self, z: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """``log p(z, c)``, and the derivative of the loss by the locations ``[H W, K]``."""
        self.layers.zero_grad()
        log_joint = self._log_joint(z)
        cross_entropy(log_joint, y).backward()
        gradient = self.layers[0].loc.grad  # [K, 1, H, W]
        return log_joint.detach().numpy(), gradient.flatten(1).T.numpy()

    @torch.no_grad()
    def forward(self, z: Tensor, y: Tensor) -> None:
        """Evaluate ``log p(z, c)``."""
        self._log_joint(z)

    def step(self, z: Tensor, y: Tensor) -> None:
        """Forward, backward, Adam."""
        self.adam.zero_grad()
        cross_entropy(self._log_joint(z), y).backward()
        self.adam.step()

    def _log_joint(self, z: Tensor) -> Tensor:
        return self.layers(z) + self.log_prior.log_softmax(0)


@torch.no_grad()
def build(grid: tuple[int, int], parameters: Parameters) -> nn.Sequential:
    """The layers, with these parameters; its arrays have the channels before the cells."""
    dgcspn.dirichlet_ = lambda weight, *_, **__: nn.init.zeros_(weight)
    layers = [dgcspn.SpatialGaussianLayer((1, *grid), LEAVES)]

    def add_product(padding: str, stride: int, dilation: int) -> None:
        below = layers[-1].out_features
        layers.append(dgcspn.SpatialProductLayer(below, 2, padding, stride, dilation))

    def add_sum(outputs: int) -> None:
        layers.append(dgcspn.SpatialSumLayer(layers[-1].out_features, outputs))

    for outputs in STRIDED_SUMS:
        add_product("valid", 2, 1)
        add_sum(outputs)
    for i, outputs in enumerate(DILATED_SUMS):
        add_product("full", 1, 2**i)
        add_sum(outputs)
    add_product("final", 1, FINAL_DILATION)
    layers.append(dgcspn.SpatialRootLayer(layers[-1].out_features, CLASSES))

    layers[0].loc.copy_(torch.tensor(parameters.location).permute(2, 0, 1).unsqueeze(1))
    *local, root = (torch.tensor(w).log().permute(3, 2, 0, 1) for w in parameters.weights)
    sums = [layer for layer in layers if isinstance(layer, dgcspn.SpatialSumLayer)]
    for layer, log_weights in zip(sums, local, strict=True):
        layer.weight.copy_(log_weights)
    layers[-1].weight.copy_(root.flatten(1))
    return nn.Sequential(*layers)
