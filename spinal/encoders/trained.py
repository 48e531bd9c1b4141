"""Networks that are trained on images, and encoders made from them after training.

Such a network consists of a trunk, a dense layer with a ReLU (not ``resnet-slim``), and a head. The
trunk alone is an encoder with its own weights.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName
from spinal.networks import Network, NetworkError, Preprocess, build_network
from spinal.networks.network import seeded

#: Networks that are trained from scratch on images, with their width; the paper's VGG needs a GPU.
SCRATCH = {"lenet": 1.0, "vgg": 0.25, "resnet-slim": 1.0}
#: The default side of their images, in pixels.
SIZE = 32


def build_from_scratch(name: str, size: int, n_classes: int, seed: int = 0) -> Network:
    """A network of `SCRATCH` for images ``[size, size, 3]``."""
    return build_network(name, (size, size, 3), n_classes, width=SCRATCH[name], seed=seed)


def build_fine_tuned(
    encoder: ImageEncoder, n_classes: int, width: int = 128, seed: int = 0
) -> Network:
    """A network for fine-tuning: the network of an encoder, with a new dense layer and head.

    The weights are copied, and training from scratch starts from them.

    Args:
        encoder: provides the pretrained network.
        n_classes: number of logits.
        width: size of the dense layer, that is, the number of features.
        seed: for the initial weights of that layer and the head.

    Raises:
        NetworkError: if the encoder has no weights, or consists of several networks.
    """
    if not isinstance(encoder.trunk, Trunk):
        raise NetworkError(f"{encoder.name}: several networks cannot be fine-tuned; name one")
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
    """The part of a trained network before its last dense layer; weights are shared."""
    below = network.last_layer().below
    # A trunk averages by itself, so the averaging layer of a fine-tuned network is dropped.
    body = below[0] if isinstance(below[-1], _Average) else nn.Sequential(*below)
    mean, std = network.preprocess.mean.expand(3), network.preprocess.std.expand(3)
    return Trunk(body, (255 * mean).tolist(), (255 * std).tolist())


def load(name: EncoderName) -> ImageEncoder:
    """The trunk of a trained network of `SCRATCH` as an encoder; the name gives the weights."""
    network = build_from_scratch(name.plain, name.size or SIZE, n_classes=2)
    return build_image_encoder(name, build_trunk(network), SIZE)


class _Average(nn.Module):
    """The mean of ``[N, D, H, W]`` over H and W, ``[N, D]``, as in `Trunk`."""

    def forward(self, z: Tensor) -> Tensor:
        return z.mean((2, 3)) if z.ndim == 4 else z
