"""Modules that users bring, cut by name: they give what they gave, or it is said why not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from spinal.networks import Network, NetworkError, compute_features, predict_logits, train, wrap
from spinal.networks.training import TrainSettings

QUICK = TrainSettings(min_steps=5, max_steps=5)


class Block(nn.Module):
    """A residual block, as in torchvision's ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.norm(self.conv(x)))


class Residual(nn.Module):
    """A stem, two blocks, an average, dropout by function, two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.layers = nn.Sequential(Block(8), Block(8))
        self.average = nn.AdaptiveAvgPool2d(1)
        self.hidden = nn.Linear(8, 6)
        self.classify = nn.Linear(6, 4)
        self.offset = nn.Parameter(torch.zeros(4))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.offset)

    def forward(self, x: Tensor) -> Tensor:
        x = self.average(self.layers(self.stem(x)))
        x = functional.dropout(torch.flatten(x, 1), 0.3, training=self.training)
        x = functional.relu(self.hidden(x))
        return self.classify(x) + self.offset


def residual() -> Residual:
    torch.manual_seed(0)
    return Residual()


@pytest.mark.parametrize(("name", "features"), [("average", 8), ("hidden", 6)])
def test_a_module_cut_by_name_gives_what_it_gave(name: str, features: int) -> None:
    module = residual().eval()
    network = wrap(module, name, (10, 9, 3)).eval()
    x = torch.randn(5, 3, 10, 9)
    torch.testing.assert_close(network(x), module(x))
    assert network.features(x).shape == (5, features)
    torch.testing.assert_close(network.head(network.features(x)), module(x))


def test_a_head_that_works_in_place_leaves_the_features_alone() -> None:
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)).eval()
    network = wrap(module, "0", (4,))
    z = compute_features(network, np.random.default_rng(0).normal(size=(9, 4)))
    before = z.clone()
    predict_logits(network, z)
    assert torch.equal(z, before)


def test_a_part_of_several_layers_can_be_named() -> None:
    module = nn.Sequential(nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 2))
    network = wrap(module, "0", (4,))
    x = torch.randn(3, 4)
    torch.testing.assert_close(network.features(x), module[0](x))
    assert wrap(module, "0.0", (4,)).features(x).min() < 0


def test_wrapped_weights_are_those_of_the_module() -> None:
    module = residual()
    network = wrap(module, "average", (10, 9, 3))
    assert sum(p.numel() for p in network.parameters()) == sum(
        p.numel() for p in module.parameters()
    )
    images = np.random.default_rng(0).integers(0, 256, (12, 10, 9, 3), np.uint8)
    before = module.classify.weight.clone()
    train(network, images, np.arange(12) % 4, QUICK)
    assert not torch.equal(module.classify.weight, before)
    network.restart(0)
    assert torch.equal(module.classify.weight, before)


def test_functional_dropout_follows_the_mode_of_the_network() -> None:
    network = wrap(residual(), "average", (10, 9, 3))
    z = torch.randn(50, 8)
    assert torch.equal(network.eval().head(z), network.head(z))
    assert not torch.equal(network.train().head(z), network.head(z))


def test_without_pretrained_weights_are_drawn_anew() -> None:
    network = wrap(residual(), "average", (10, 9, 3), pretrained=False)
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    network.restart(3)
    after = dict(network.named_parameters())
    assert not torch.equal(before["body.module.stem.weight"], after["body.module.stem.weight"])
    assert not torch.equal(before["head.classify.weight"], after["head.classify.weight"])
    assert torch.equal(before["head.offset"], after["head.offset"])  # zeros, as it says


def test_given_mean_and_deviation_are_kept() -> None:
    mean = np.array([0.5, 0.4, 0.3])
    network = wrap(residual(), "average", (10, 9, 3), mean=mean, std=(0.2, 0.2, 0.2))
    images = np.full((2, 10, 9, 3), 255, np.uint8)
    train(network, images, np.zeros(2), QUICK)
    np.testing.assert_allclose(network.to_input(images)[0, :, 0, 0], [2.5, 3, 3.5], rtol=1e-5)


def test_given_features_and_head() -> None:
    network = Network(nn.Conv2d(1, 2, 3), nn.Linear(2 * 4, 3))
    z = compute_features(network, np.zeros((7, 4, 4, 1), np.uint8), np.array([4, 2]))
    assert z.shape == (2, 8)


class Skip(nn.Module):
    """The last layer sees the input again."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(4, 3), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.cat([self.hidden(x), x], 1))


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.hidden(x)
        return self.last(x if x.sum() > 0 else -x)


class OnlyInTraining(Branching):
    def forward(self, x: Tensor) -> Tensor:
        x = self.hidden(x)
        return self.last(2 * x if self.training else x)


class Twice(Branching):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(self.hidden(x)))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Skip(), "needs more than its output"),
        (Branching(), "cannot be traced"),
        (OnlyInTraining(), "another path in training"),
        (Twice(), "called 2 times"),
    ],
)
def test_what_cannot_be_cut_says_to_cut_by_hand(module: nn.Module, message: str) -> None:
    with pytest.raises(NetworkError, match=rf"{message}.*Network\(features, head\)"):
        wrap(module, "hidden", (4,))


def test_features_that_are_no_vector_are_refused() -> None:
    with pytest.raises(NetworkError, match="name a later module"):
        wrap(residual(), "layers.0", (10, 9, 3))


def test_an_unknown_part_gets_a_suggestion() -> None:
    with pytest.raises(NetworkError, match=r"did you mean 'average'\?"):
        wrap(residual(), "averag", (10, 9, 3))
    with pytest.raises(NetworkError, match=r"there are stem, layers, .*classify"):
        wrap(residual(), "nothing-like-it", (10, 9, 3))
