"""Networks that are trained on images, and what is left of them as backbones afterwards.

Such a network is a trunk, a dense layer with a ReLU, and a head. Cut before its dense layer, it is
a backbone like any other, with weights of its own, and what follows is the same for all.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from spinal.encoders.backbone import Backbone, Trunk
from spinal.networks import Network, NetworkError, Preprocess, build_network
from spinal.networks.network import seeded

#: Networks that are trained from scratch on images, and their width: the paper's VGG is for GPUs.
SCRATCH = {"lenet": 1.0, "vgg": 0.25}
#: The side of the images that they see, in pixels, unless another is asked for.
SIZE = 32


def build_from_scratch(name: str, size: int, classes: int, seed: int = 0) -> Network:
    """A network of `SCRATCH` for images ``[size, size, 3]``."""
    return build_network(name, (size, size, 3), classes, width=SCRATCH[name], seed=seed)


def build_fine_tuned(backbone: Backbone, classes: int, width: int = 128, seed: int = 0) -> Network:
    """The network of a backbone, to be trained on, with a dense layer and a head on top.

    It has a copy of the weights, and training from scratch starts from these.

    Args:
        backbone: what it starts from.
        classes: number of logits.
        width: of the dense layer, that is, the number of features.
        seed: of the first weights of that layer and of the head.

    Raises:
        NetworkError: if the backbone has no weights.
    """
    trunk = copy.deepcopy(backbone.trunk).cpu().requires_grad_(True)
    if not any(True for _ in trunk.parameters()):
        raise NetworkError(f"{backbone.name} has no weights that could be fine-tuned")
    with seeded(seed):
        body = nn.Sequential(trunk.body, _Average(), nn.Linear(backbone.features, width), nn.ReLU())
        head = nn.Sequential(nn.Dropout(0.5), nn.Linear(width, classes))
    preprocess = Preprocess((backbone.size, backbone.size, 3))
    preprocess.set(trunk.mean.flatten().expand(3) / 255, trunk.std.flatten().expand(3) / 255)
    return Network(body, head, preprocess=preprocess, pretrained=True)


def cut_last_layer(network: Network) -> tuple[Trunk, Tensor, Tensor]:
    """A network that was trained on images as a trunk, and ``features(x) = relu(W trunk(x) + b)``.

    Returns:
        The trunk, whose weights are the network's; W ``[F, D]`` and b ``[F]``, with a batch norm
        after them folded in.
    """
    *below, dense, last = list(network.body.children())
    norm: nn.BatchNorm1d | None = None
    if isinstance(dense, nn.BatchNorm1d):
        norm, (*below, dense) = dense, below
    if not isinstance(dense, nn.Linear) or not isinstance(last, nn.ReLU):
        raise NetworkError("a network that does not end in a dense layer and a ReLU")
    weight = dense.weight.detach()
    bias = torch.zeros_like(weight[:, 0]) if dense.bias is None else dense.bias.detach()
    if norm is not None:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
        weight, bias = scale[:, None] * weight, scale * (bias - norm.running_mean) + norm.bias
    # Fine-tuned: what averages is part of every trunk, and not of its body.
    body = below[0] if isinstance(below[-1], _Average) else nn.Sequential(*below)
    mean, std = network.preprocess.mean.expand(3), network.preprocess.std.expand(3)
    return Trunk(body, (255 * mean).tolist(), (255 * std).tolist()), weight, bias.detach()


def build_trunk(name: str, size: int) -> Trunk:
    """The trunk of a network of `SCRATCH`, whose weights are still to be filled in."""
    return cut_last_layer(build_from_scratch(name, size, classes=2))[0]


class _Average(nn.Module):
    """``[N, D, H, W]`` to its means over H and W, ``[N, D]``, as `Trunk` does it."""

    def forward(self, z: Tensor) -> Tensor:
        return z.mean((2, 3)) if z.ndim == 4 else z
