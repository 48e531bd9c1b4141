"""Networks that are trained on images, and the encoders that they become afterwards.

Such a network is a trunk, a dense layer with a ReLU, and a head. Cut before its dense layer, it is
an encoder like any other, with weights of its own.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName
from spinal.networks import Network, NetworkError, Preprocess, build_network
from spinal.networks.network import seeded

#: Networks that are trained from scratch on images, and their width: the paper's VGG is for GPUs.
SCRATCH = {"lenet": 1.0, "vgg": 0.25}
#: The side of the images that they see, in pixels, unless another is asked for.
SIZE = 32


def build_from_scratch(name: str, size: int, n_classes: int, seed: int = 0) -> Network:
    """A network of `SCRATCH` for images ``[size, size, 3]``."""
    return build_network(name, (size, size, 3), n_classes, width=SCRATCH[name], seed=seed)


def build_fine_tuned(
    encoder: ImageEncoder, n_classes: int, width: int = 128, seed: int = 0
) -> Network:
    """The network of an encoder, to be trained further, with a dense layer and a head on top.

    It has a copy of the weights, and training from scratch starts from these.

    Args:
        encoder: what it starts from.
        n_classes: number of logits.
        width: of the dense layer, that is, the number of features.
        seed: of the first weights of that layer and of the head.

    Raises:
        NetworkError: if the encoder has no weights.
    """
    trunk = copy.deepcopy(encoder.trunk).cpu().requires_grad_(True)
    if not any(True for _ in trunk.parameters()):
        raise NetworkError(f"{encoder.name} has no weights that could be fine-tuned")
    with seeded(seed):
        body = nn.Sequential(trunk.body, _Average(), nn.Linear(encoder.width, width), nn.ReLU())
        head = nn.Sequential(nn.Dropout(0.5), nn.Linear(width, n_classes))
    preprocess = Preprocess((encoder.size, encoder.size, 3))
    preprocess.set(trunk.mean.flatten().expand(3) / 255, trunk.std.flatten().expand(3) / 255)
    return Network(body, head, preprocess=preprocess, pretrained=True)


def build_trunk(network: Network) -> Trunk:
    """All of a trained network below its last dense layer; the weights are the network's."""
    below = network.last_layer().below
    # Fine-tuned: what averages is part of every trunk, and not of its body.
    body = below[0] if isinstance(below[-1], _Average) else nn.Sequential(*below)
    mean, std = network.preprocess.mean.expand(3), network.preprocess.std.expand(3)
    return Trunk(body, (255 * mean).tolist(), (255 * std).tolist())


def load(name: EncoderName) -> ImageEncoder:
    """The encoder that is left of a network of `SCRATCH`, whose weights the name gives."""
    network = build_from_scratch(name.plain, name.size or SIZE, n_classes=2)
    return build_image_encoder(name, build_trunk(network), SIZE)


class _Average(nn.Module):
    """``[N, D, H, W]`` to its means over H and W, ``[N, D]``, as `Trunk` does it."""

    def forward(self, z: Tensor) -> Tensor:
        return z.mean((2, 3)) if z.ndim == 4 else z
