"""LeNet as plain torch, with weights drawn from a seed, for libraries that take any module."""

from __future__ import annotations

import acquisition_data as data
import torch
from torch import nn


class LeNet(nn.Module):
    """The layers of spinal's ``lenet`` for images of 28 x 28."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
            nn.Dropout(0.5), nn.Flatten(), nn.Linear(4096, 128), nn.ReLU(),
            nn.Dropout(0.5), nn.Linear(128, 10),
        )  # fmt: skip
        fill(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.layers(x)


@torch.no_grad()
def fill(network: nn.Module) -> None:
    """Put the drawn weights in the place of the network's own."""
    parameters = list(network.parameters())
    drawn = data.weights([tuple(p.shape) for p in parameters])
    for parameter, values in zip(parameters, drawn, strict=True):
        parameter.copy_(torch.from_numpy(values))


def inputs(n: int) -> torch.Tensor:
    """The images as float32 ``[N, 1, 28, 28]``, 0 to 1."""
    return torch.from_numpy(data.images(n)).permute(0, 3, 1, 2).float() / 255
