"""Parts of `spinal.networks.resnet_slim`: residual blocks, and features of mirrored images."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """``relu(f(x) + shortcut(x))`` with f: conv, batch norm, ReLU, conv, batch norm.

    Convolutions are 3 x 3, padded by 1, without biases. The shortcut is a 1 x 1 convolution with
    batch norm, or the identity where shapes do not change.

    Args:
        inputs: number of channels of ``x``.
        outputs: number of channels of the result.
        stride: stride of the first convolution and the shortcut.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """``[N, inputs, H, W]`` to ``[N, outputs, H / stride, W / stride]``, rounded up."""
        return torch.relu(self.residual(x) + self.shortcut(x))


class Mirrored(nn.Module):
    """In evaluation mode, the mean of a module's outputs for images and their mirror images.

    In training mode, the output for the images alone. Train with ``augment="flip"``, so that mirror
    images are familiar.

    Args:
        module: maps images ``[N, channels, H, W]`` to ``[N, F]``.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """``[N, channels, H, W]`` to ``[N, F]``."""
        if self.training:
            return self.module(x)
        return (self.module(x) + self.module(x.flip(3))) / 2
