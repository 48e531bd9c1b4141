"""Several networks side by side, as one encoder: ``efficientnet-lite0+efficientnet-lite2@160``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spinal.encoders.images import ImageEncoder


class SideBySide(nn.Module):
    r"""The features of several trunks, :math:`(z_1 / \|z_1\|, z_2 / \|z_2\|, \dots)`.

    Each block is scaled to length 1, so all have the same influence.

    Args:
        trunks: each maps uint8 ``[N, S, S, 3]`` to ``[N, D]``.
    """

    def __init__(self, trunks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.trunks = nn.ModuleList(trunks)

    def forward(self, pixels: Tensor) -> Tensor:
        """uint8 ``[N, S, S, 3]`` to float32 ``[N, D_1 + D_2 + ...]``."""
        blocks = [nn.functional.normalize(trunk(pixels)) for trunk in self.trunks]
        return torch.cat(blocks, dim=1)


def side_by_side(encoders: Sequence[ImageEncoder]) -> ImageEncoder:
    """One encoder with the features of all encoders.

    Args:
        encoders: for images of the same size, on the same device.
    """
    first = encoders[0]
    name = "+".join(encoder.name.partition("@")[0] for encoder in encoders) + f"@{first.size}"
    trunk = SideBySide([encoder.trunk for encoder in encoders])
    return ImageEncoder(name, trunk, first.size, resample=first.resample, device=first.device)
