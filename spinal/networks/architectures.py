"""The networks by name: the paper's LeNet-like CNN and VGG, a slim ResNet, and one dense layer.

Each is built for the shape of a point, (H, W, C) or (D,), and a number of classes. ``width`` scales
channels and features; the number of features stays a multiple of 16, so that it fills a grid of
an SPN. All weights come from ``seed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from spinal.errors import first_line, suggestion
from spinal.networks.inputs import Preprocess
from spinal.networks.network import Network, NetworkError, seeded
from spinal.networks.residual import Mirrored, ResidualBlock


def lenet(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    features: int | None = None,
    dropout: float = 0.5,
    seed: int = 0,
) -> Network:
    """The paper's LeNet-like CNN for MNIST.

    | body: 2 x (conv 32, ReLU), maxpool, 2 x (conv 64, ReLU), dropout, flatten, dense 128, ReLU
    | head: dropout, dense

    The paper does not state the size of its filters; it is 3 x 3 here. Convolutions are not padded,
    as in Keras, unless a side of the images is below 16 pixels: then they are padded by 1. Images
    one pixel wide or high are not pooled.

    Args:
        input_shape: (H, W, C).
        n_classes: number of logits.
        width: factor on channels and features.
        features: size of the dense layer, in place of ``width * 128``.
        dropout: rate of both dropout layers.
        seed: for the weights.
    """
    sides, channels = _image_shape("lenet", input_shape)
    first, second = _scaled(32, width, 4), _scaled(64, width, 4)
    n_features = _n_features(128, width, features)
    padding = 1 if min(sides) < 16 else 0
    side = min(sides) - 4 + 4 * padding  # before the pooling
    with seeded(seed):  # torch's layers draw weights from the global generator when constructed
        body = nn.Sequential(
            nn.Conv2d(channels, first, 3, padding=padding),
            nn.ReLU(),
            nn.Conv2d(first, first, 3, padding=padding),
            nn.ReLU(),
            *([nn.MaxPool2d(2)] if side >= 2 else []),
            nn.Conv2d(first, second, 3, padding=padding),
            nn.ReLU(),
            nn.Conv2d(second, second, 3, padding=padding),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Flatten(),
        )
        body.extend([nn.Linear(_flat_size(body, sides, channels), n_features), nn.ReLU()])
        head = nn.Sequential(nn.Dropout(dropout), nn.Linear(n_features, n_classes))
    return _network(
        "lenet",
        body,
        head,
        input_shape,
        n_classes,
        seed,
        width=width,
        features=features,
        dropout=dropout,
    )


def vgg(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    features: int | None = None,
    dropout: float | Sequence[float] = 0.5,
    seed: int = 0,
) -> Network:
    """The paper's VGG for CIFAR-10, Fashion-MNIST and SVHN: ten convolutions in four blocks.

    | body: 2 x conv 64, maxpool, dropout .2; 2 x conv 128, maxpool, dropout .3;
    |       3 x conv 256, maxpool, dropout .4; 3 x conv 512, maxpool, dropout .5;
    |       flatten, dense 512, batch norm, ReLU
    | head: dropout .5, dense

    where a conv is a 3 x 3 convolution padded by 1, batch norm, and a ReLU. The paper does not
    list its ReLUs. The dense layer needs one too: without it, dense layer and head would be one
    linear map of rank at most C. A pooling layer that would shrink a small image to nothing is
    omitted.

    Args:
        input_shape: (H, W, C).
        n_classes: number of logits.
        width: factor on channels and features; 1 is too slow without a GPU.
        features: size of the dense layer, in place of ``width * 512``.
        dropout: rate of the last two dropout layers, which the paper tuned, or the rates of all
            five. Narrow networks need lower rates: at width 1/8, SVHN is not learned at all with
            the rates of the paper.
        seed: for the weights.
    """
    sides, channels = _image_shape("vgg", input_shape)
    side, inputs, n_features = min(sides), channels, _n_features(512, width, features)
    rates = (0.2, 0.3, 0.4, dropout, dropout) if isinstance(dropout, int | float) else dropout
    if len(rates) != 5:
        raise NetworkError(f"the VGG has five dropout layers, not {len(rates)}")
    blocks = zip((64, 128, 256, 512), (2, 2, 3, 3), rates, strict=False)
    with seeded(seed):
        body = nn.Sequential()
        for size, convolutions, rate in blocks:
            outputs = _scaled(size, width, 4)
            for _ in range(convolutions):
                body.extend(_convolution(inputs, outputs))
                inputs = outputs
            if side >= 2:
                body.append(nn.MaxPool2d(2))
                side //= 2
            body.append(nn.Dropout(rate))
        body.append(nn.Flatten())
        body.append(nn.Linear(_flat_size(body, sides, channels), n_features, bias=False))
        body.extend([nn.BatchNorm1d(n_features), nn.ReLU()])
        head = nn.Sequential(nn.Dropout(rates[-1]), nn.Linear(n_features, n_classes))
    return _network(
        "vgg",
        body,
        head,
        input_shape,
        n_classes,
        seed,
        width=width,
        features=features,
        dropout=dropout,
    )


def _convolution(inputs: int, outputs: int) -> list[nn.Module]:
    """Convolution, batch norm, ReLU; batch norm subtracts the mean, so a bias has no effect."""
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


def resnet_slim(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    dropout: float = 0.1,
    mirror: bool = False,
    seed: int = 0,
) -> Network:
    """A small residual network, for images from about 1,000 labels on.

    | body: conv 16 with stride 2, batch norm, ReLU;
    |       residual blocks of 32, 64 and 128 channels with strides 1, 2, 2; global average
    | head: dropout, dense

    At width 1, for 32 x 32 x 3 and ten classes, it has 304,154 parameters. Train it with
    `spinal.networks.SLIM`. Images with a side below 16 pixels are not shrunk by the first
    convolution.

    Args:
        input_shape: (H, W, C).
        n_classes: number of logits.
        width: factor on channels and features.
        dropout: rate in the head.
        mirror: whether features are means over an image and its mirror image. Predictions are
            better, and take twice as long. Not for images whose mirror image means something else.
        seed: for the weights.
    """
    sides, inputs = _image_shape("resnet-slim", input_shape)
    # Multiples of 8: with four channels, channels last, a 1 x 1 convolution of stride 2 corrupts
    # memory in PyTorch 2.13 on processors that have AVX2 but not AVX-512.
    outputs = _scaled(16, width, 8)
    n_features = _scaled(128, width, 16)
    with seeded(seed):
        stride = 2 if min(sides) >= 16 else 1
        layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )
        blocks = zip(
            (_scaled(32, width, 8), _scaled(64, width, 8), n_features), (1, 2, 2), strict=True
        )
        for size, stride in blocks:
            layers.append(ResidualBlock(outputs, size, stride))
            outputs = size
        layers.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        body = Mirrored(layers) if mirror else layers
        head = nn.Sequential(nn.Dropout(dropout), nn.Linear(n_features, n_classes))
    return _network(
        "resnet-slim", body, head, input_shape, n_classes, seed,
        width=width, dropout=dropout, mirror=mirror,
    )  # fmt: skip


def dense(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    features: int | None = None,
    dropout: float = 0.5,
    input_dropout: float = 0.0,
    seed: int = 0,
) -> Network:
    """One dense layer, for points that are already feature vectors: embeddings, tables.

    | body: (dropout,) dense 128, ReLU
    | head: dropout, dense

    Args:
        input_shape: (D,); images are flattened.
        n_classes: number of logits.
        width: factor on the features.
        features: their number, in place of ``width * 128``.
        dropout: rate in the head.
        input_dropout: rate on the inputs; 0 for no such layer.
        seed: for the weights.
    """
    n_features = _n_features(128, width, features)
    with seeded(seed):
        body = nn.Sequential(
            nn.Flatten(),
            *([nn.Dropout(input_dropout)] if input_dropout else []),
            nn.Linear(math.prod(input_shape), n_features),
            nn.ReLU(),
        )
        head = nn.Sequential(nn.Dropout(dropout), nn.Linear(n_features, n_classes))
    return _network(
        "dense", body, head, input_shape, n_classes, seed,
        width=width, features=features, dropout=dropout, input_dropout=input_dropout,
    )  # fmt: skip


NETWORKS: dict[str, Callable[..., Network]] = {
    "lenet": lenet, "vgg": vgg, "resnet-slim": resnet_slim, "dense": dense,
}  # fmt: skip


def build_network(
    name: str,
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    seed: int = 0,
    **options: Any,
) -> Network:
    """A network from the table `NETWORKS`.

    Args:
        name: ``lenet``, ``vgg``, ``resnet-slim`` or ``dense``.
        input_shape: shape of one point: (H, W, C) or (D,), that is, ``points.shape[1:]``.
        n_classes: number of logits.
        width: factor on channels and features.
        seed: for the weights.
        options: further arguments of that network, such as ``dropout``.

    Raises:
        NetworkError: if there is no such network, or it does not fit the points.
    """
    if name not in NETWORKS:
        raise NetworkError(f"no network {name!r}: {suggestion(name, NETWORKS)}")
    try:
        return NETWORKS[name](input_shape, n_classes, width=width, seed=seed, **options)
    except NetworkError:
        raise
    # A wrong name or value of an argument; a size beyond the memory, or beyond all integers.
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise NetworkError(f"{name}: {first_line(error)}") from error


def _network(
    name: str,
    body: nn.Module,
    head: nn.Module,
    input_shape: Sequence[int],
    n_classes: int,
    seed: int,
    **arguments: Any,
) -> Network:
    shape = tuple(int(n) for n in input_shape)
    config = {"name": name, "input_shape": list(shape), "n_classes": n_classes, **arguments}
    network = Network(body, head, preprocess=Preprocess(shape), config=config)
    network.restart(seed)
    return network


def _image_shape(name: str, input_shape: Sequence[int]) -> tuple[tuple[int, int], int]:
    if len(input_shape) != 3:
        raise NetworkError(
            f"{name} is for images, (H, W, C), not for points of shape {tuple(input_shape)}: "
            "for feature vectors, take 'dense'"
        )
    height, width, channels = (int(n) for n in input_shape)
    return (height, width), channels


def _scaled(size: int, width: float, multiple: int) -> int:
    """``width * size``, rounded to a positive multiple of ``multiple``."""
    if not width > 0:
        raise NetworkError(f"width must be positive, not {width}")
    return max(1, round(width * size / multiple)) * multiple


def _n_features(size: int, width: float, features: int | None) -> int:
    if features is None:
        return _scaled(size, width, 16)
    if features < 1:
        raise NetworkError(f"features must be 1 or more, not {features}")
    return features


@torch.no_grad()
def _flat_size(body: nn.Module, sides: tuple[int, int], channels: int) -> int:
    """The number of values that ``body`` returns for each point."""
    training = body.training
    size = body.eval()(torch.zeros(1, channels, *sides)).numel()
    body.train(training)
    return size
