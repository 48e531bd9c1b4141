"""The networks layer by layer, and their shapes for points of many shapes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from spinal.errors import DataError, SpinalError
from spinal.networks import (
    NETWORKS,
    Network,
    NetworkError,
    build_network,
    dense,
    lenet,
    resnet_slim,
    vgg,
)
from spinal.networks.residual import ResidualBlock

SHAPES = {
    "lenet": [(28, 28, 1), (32, 32, 3), (8, 8, 1), (16, 16, 3), (15, 40, 2), (3, 2, 1), (1, 5, 4)],
    "vgg": [(28, 28, 1), (32, 32, 3), (8, 8, 1), (16, 40, 2), (3, 2, 1), (1, 1, 3)],
    "resnet-slim": [(28, 28, 1), (32, 32, 3), (8, 8, 1), (64, 40, 3), (3, 2, 1), (1, 1, 3)],
    "dense": [(64,), (1,), (4, 4, 3)],
}
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


def some_points(shape: tuple[int, ...], n: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    if len(shape) == 3:
        return rng.integers(0, 256, (n, *shape), np.uint8)
    return rng.normal(size=(n, *shape)).astype(np.float32)


def kinds(module: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in module.children()]


def parameters(network: Network) -> int:
    return sum(p.numel() for p in network.parameters())


def test_lenet_is_the_papers_layer_by_layer() -> None:
    network = lenet((28, 28, 1), 10)
    assert kinds(network.body) == [
        "Conv2d", "ReLU", "Conv2d", "ReLU", "MaxPool2d", "Conv2d", "ReLU", "Conv2d", "ReLU",
        "Dropout", "Flatten", "Linear", "ReLU",
    ]  # fmt: skip
    assert kinds(network.head) == ["Dropout", "Linear"]
    # 3 x 3 filters with biases; 28 -> 26 -> 24 -> 12 -> 10 -> 8, so that 64 x 8 x 8 go in.
    by_hand = (9 + 1) * 32 + (9 * 32 + 1) * 32 + (9 * 32 + 1) * 64 + (9 * 64 + 1) * 64
    by_hand += (64 * 8 * 8 + 1) * 128 + (128 + 1) * 10
    assert parameters(network) == by_hand == 590_698
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]


def test_lenet_pads_small_images() -> None:
    flat = {side: lenet((side, side, 1), 10).body[-2].in_features for side in (8, 15, 16)}
    assert flat == {8: 64 * 4 * 4, 15: 64 * 7 * 7, 16: 64 * 2 * 2}


def test_vgg_is_the_papers_layer_by_layer() -> None:
    network = vgg((32, 32, 3), 10)
    conv = ["Conv2d", "BatchNorm2d", "ReLU"]
    assert kinds(network.body) == [
        *conv * 2, "MaxPool2d", "Dropout", *conv * 2, "MaxPool2d", "Dropout",
        *conv * 3, "MaxPool2d", "Dropout", *conv * 3, "MaxPool2d", "Dropout",
        "Flatten", "Linear", "BatchNorm1d", "ReLU",
    ]  # fmt: skip
    assert kinds(network.head) == ["Dropout", "Linear"]
    channels = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512]
    by_hand = sum(9 * a * b + 2 * b for a, b in pairwise(channels))
    by_hand += 512 * 2 * 2 * 512 + 2 * 512 + (512 + 1) * 10
    assert parameters(network) == by_hand == 8_692_682
    rates = [m.p for m in network.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.2, 0.3, 0.4, 0.5, 0.5]


def test_resnet_slim_by_hand() -> None:
    network = resnet_slim((32, 32, 3), 10)
    conv = 9 * (3 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64 + 64 * 128 + 128 * 128)
    shortcuts = 16 * 32 + 32 * 64 + 64 * 128
    norms = 2 * (16 + 3 * (32 + 64 + 128))
    assert parameters(network) == conv + shortcuts + norms + 129 * 10 == 304_154
    x = network.to_input(some_points((32, 32, 3)))
    sides = []
    for layer in network.body:
        x = layer(x)
        sides.append(tuple(x.shape[1:]))
    assert sides == [(16, 16, 16)] * 3 + [
        (32, 16, 16),
        (64, 8, 8),
        (128, 4, 4),
        (128, 1, 1),
        (128,),
    ]


def test_a_residual_block_adds_its_shortcut() -> None:
    block = ResidualBlock(4, 4).eval()
    x = torch.randn(2, 4, 5, 5)
    nn.init.zeros_(block.residual[-1].weight)  # then nothing is added to the shortcut
    assert torch.equal(block(x), x.relu())
    assert ResidualBlock(4, 6, stride=2)(x).shape == (2, 6, 3, 3)


def test_dense_is_one_hidden_layer() -> None:
    assert kinds(dense((20,), 3).body) == ["Flatten", "Linear", "ReLU"]
    assert kinds(dense((20,), 3, input_dropout=0.2).body)[1] == "Dropout"
    assert parameters(dense((20,), 3)) == 21 * 128 + 129 * 3


@pytest.mark.parametrize(("name", "shape"), CASES)
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_features_and_head_make_the_forward_pass(
    name: str, shape: tuple[int, ...], width: float
) -> None:
    width = 0.1 if name == "vgg" else width
    network = build_network(name, shape, 7, width=width).eval()
    x = network.to_input(some_points(shape))
    with torch.no_grad():
        z, logits = network.features(x), network(x)
        assert torch.equal(network.head(z), logits)
    assert logits.shape == (3, 7)
    assert z.shape[1] % 16 == 0
    assert abs(z.shape[1] - width * (512 if name == "vgg" else 128)) <= 8
    assert (z >= 0).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_come_from_the_seed_alone(name: str) -> None:
    before = torch.get_rng_state()
    a, b, c = (build_network(name, (8, 8, 1), 3, width=0.1, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(
        torch.equal(one, other) for one, other in zip(a.parameters(), b.parameters(), strict=True)
    )
    assert not torch.equal(a.head[1].weight, c.head[1].weight)


def test_restarting_is_building_anew() -> None:
    network, fresh = lenet((8, 8, 1), 3, seed=0), lenet((8, 8, 1), 3, seed=5)
    network.restart(5)
    for name, value in fresh.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(SpinalError, match=r"did you mean 'lenet'\?"):
        build_network("lennet", (8, 8, 1), 3)
    with pytest.raises(NetworkError, match=r"lenet: .*'widht'"):
        build_network("lenet", (8, 8, 1), 3, widht=2)
    with pytest.raises(NetworkError, match="take 'dense'"):
        build_network("vgg", (64,), 3)
    with pytest.raises(NetworkError, match="width must be positive"):
        build_network("lenet", (8, 8, 1), 3, width=0)


def test_points_of_another_shape_are_refused() -> None:
    network = lenet((8, 8, 1), 3)
    with pytest.raises(DataError, match=r"\(28, 28, 1\), but the network is for \(8, 8, 1\)"):
        network.to_input(np.zeros((2, 28, 28, 1), np.uint8))
    with pytest.raises(DataError, match="give uint8 images"):
        network.to_input(np.zeros((2, 8, 8, 1), np.float32))


def test_restart_refuses_weights_that_it_cannot_draw() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(1))

    network = Network(nn.Sequential(nn.Linear(3, 2), Scale()), nn.Linear(2, 2))
    with pytest.raises(NetworkError, match=r"1 \(Scale\) has weights, but no reset_parameters"):
        network.restart(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "between 0 and 1"),
        ({"dropout": float("inf")}, "between 0 and 1"),
        ({"width": 1e12}, "allocate"),
        ({"width": float("inf")}, "infinity"),
        ({"depth": 3}, "depth"),
    ],
)
def test_arguments_that_make_no_network_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(NetworkError, match=f"^dense: .*{message}"):
        build_network("dense", (12,), 3, **options)


@pytest.mark.parametrize("width", [0.01, 0.1, 0.3, 0.4, 1.0])
def test_shortcuts_of_stride_2_have_a_multiple_of_8_channels(width: float) -> None:
    # With four, PyTorch crashes on some processors.
    network = build_network("resnet-slim", (32, 32, 3), 10, width=width)
    shortcuts = [
        module for module in network.modules()
        if isinstance(module, torch.nn.Conv2d) and module.kernel_size == (1, 1)
    ]  # fmt: skip
    assert any(shortcut.stride == (2, 2) for shortcut in shortcuts)
    assert all(shortcut.in_channels % 8 == 0 for shortcut in shortcuts)


def test_mirrored_features_are_means_over_an_image_and_its_mirror_image() -> None:
    network = build_network("resnet-slim", (20, 16, 3), 4, width=0.5, mirror=True)
    plain = build_network("resnet-slim", (20, 16, 3), 4, width=0.5)
    assert parameters(network) == parameters(plain)
    x = network.to_input(some_points((20, 16, 3)))
    network.eval()
    plain.eval()
    expected = (plain.features(x) + plain.features(x.flip(3))) / 2
    torch.testing.assert_close(network.features(x), expected)
    torch.testing.assert_close(network.features(x.flip(3)), expected)
    assert not torch.allclose(plain.features(x.flip(3)), plain.features(x))
    torch.testing.assert_close(network.train().features(x), plain.train().features(x))
