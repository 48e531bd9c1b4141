"""The pixels of a small copy of the image: no network, for trying things out."""

from __future__ import annotations

from torch import nn

from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName

SIZE = 16


def load(name: EncoderName) -> ImageEncoder:
    """An encoder that returns the 3 S S pixel values, scaled to about -1 to 1."""
    return build_image_encoder(name, Trunk(nn.Flatten(), mean=127, std=128), SIZE)
