"""The cut before dropout: the trunk runs once, sample k is one network for every point."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spinal.networks import (
    Network,
    NetworkError,
    TrainSettings,
    build_network,
    lenet,
    load,
    save,
    set_dropout,
    split_at_dropout,
    train,
)
from spinal.networks.dropout import DroppedLinear, FixedDropout
from tests.networks.test_wrapping import residual


def logits(split: object, x: Tensor, samples: int, seed: int = 0) -> Tensor:
    return torch.stack(list(split.samples(x, samples, seed=seed)), 1)  # type: ignore[attr-defined]


def test_the_trunk_of_lenet_ends_before_its_first_dropout() -> None:
    network = lenet((28, 28, 1), 10)
    split = split_at_dropout(network)
    convolutions = [m for m in split.trunk.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 4
    assert not any(isinstance(m, nn.Conv2d) for m in split.tail.modules())
    assert [m.rate for m in split.tail.modules() if isinstance(m, FixedDropout)] == [0.5, 0.5]
    assert convolutions[0].weight is network.body[0].weight


def test_samples_are_those_of_the_network_with_masked_units() -> None:
    network = build_network("dense", (6,), 3, dropout=0.4).eval()
    x = torch.randn(4, 6)
    sampled = logits(split_at_dropout(network), x, 3)
    z = network.features(x)
    layer = FixedDropout(0.4)
    for k in range(3):
        layer.sample = k
        mask = layer(torch.ones(1, 128))
        assert mask.unique().tolist() == [0.0, pytest.approx(1 / 0.6)]
        torch.testing.assert_close(sampled[:, k], network.head[1](z * mask))


@pytest.mark.parametrize("name", ["lenet", "vgg", "resnet-slim", "dense"])
def test_a_sample_is_the_same_network_in_every_batch(name: str) -> None:
    network = build_network(name, (8, 8, 1), 5, width=0.1).eval()
    split = split_at_dropout(network)
    x = network.to_input(np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), np.uint8))
    together = logits(split, x, 4, seed=1)
    apart = torch.cat([logits(split, x[:2], 4, seed=1), logits(split, x[2:], 4, seed=1)])
    torch.testing.assert_close(together, apart)
    assert not torch.allclose(together[:, 0], together[:, 1])
    assert not torch.allclose(together, logits(split, x, 4, seed=2))
    assert not network.training


@pytest.mark.parametrize("name", ["lenet", "vgg", "resnet-slim", "dense"])
def test_the_trunk_once_is_the_plain_passes(name: str) -> None:
    network = build_network(name, (16, 16, 1), 5, width=0.2).eval()
    x = network.to_input(np.random.default_rng(0).integers(0, 256, (9, 16, 16, 1), np.uint8))
    plain = copy.deepcopy(network)
    layers = [
        (parent, child, module)
        for parent in plain.modules()
        for child, module in parent.named_children()
        if isinstance(module, nn.Dropout)
    ]
    for number, (parent, child, module) in enumerate(layers):
        setattr(parent, child, FixedDropout(module.p, number=number))
    found = logits(split_at_dropout(network), x, 6, seed=2)
    with torch.no_grad():
        for k in range(6):
            for layer in plain.modules():
                if isinstance(layer, FixedDropout):
                    layer.seed, layer.sample = 2, k
            torch.testing.assert_close(found[:, k], plain(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4, 12), (4, 3, 12)])
def test_only_kept_inputs_enter_a_dense_layer(bias: bool, shape: tuple[int, ...]) -> None:
    linear, dropout = nn.Linear(12, 5, bias=bias), FixedDropout(0.3, number=1)
    joined, x = DroppedLinear(linear, dropout), torch.randn(shape)
    with torch.no_grad():
        for dropout.seed, dropout.sample in ((0, 0), (0, 1), (1, 1)):
            torch.testing.assert_close(joined(x), linear(dropout(x)))


def test_a_dense_layer_that_is_called_twice_stays_as_it_is() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.dense = nn.Dropout(0.5), nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Tensor:
            return self.dense(self.dense(self.drop(x)).relu())

    module, x = Twice(), torch.randn(4, 6)
    sampled = logits(split_at_dropout(module), x, 2)
    layer = FixedDropout(0.5)
    for k in range(2):
        layer.sample = k
        torch.testing.assert_close(sampled[:, k], module.dense(module.dense(layer(x)).relu()))


def test_the_mean_over_masks_tends_to_the_pass_without() -> None:
    """For a head that is linear after its dropout, the expectation is the pass without it."""
    network = build_network("dense", (6,), 3).eval()
    x = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
    mean = logits(split_at_dropout(network), x, 4000).mean(1)
    torch.testing.assert_close(mean, network(x), atol=0.03, rtol=0)


def test_functional_dropout_and_skips_around_it_are_found() -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 2)
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            return self.last(x + self.drop(x.relu()))

    assert len(split_at_dropout(Around()).trunk(torch.zeros(1, 3))) == 2
    split = split_at_dropout(residual().eval())
    assert any(isinstance(m, nn.Conv2d) for m in split.trunk.modules())
    sampled = logits(split, torch.randn(3, 3, 10, 9), 2)
    assert not torch.allclose(sampled[:, 0], sampled[:, 1])


def test_layers_that_work_in_place_do_not_disturb_the_next_sample() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last, self.drop = nn.Linear(3, 8), nn.Linear(8, 2), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            return self.last(x.add_(self.drop(x)))

    module, x = InPlace(), torch.randn(4, 3)
    sampled = logits(split_at_dropout(module), x, 3)
    layer, z = FixedDropout(0.5), module.first(x)
    for k in range(3):
        layer.sample = k
        torch.testing.assert_close(sampled[:, k], module.last(z + layer(z)))


def test_channels_are_dropped_whole() -> None:
    x = torch.ones(2, 6, 3, 3)
    dropped = FixedDropout(0.5, channels=True)(x)
    assert torch.equal(dropped, dropped[:, :, :1, :1].expand_as(dropped))
    assert torch.equal(dropped[0], dropped[1])
    assert 0 < int((dropped[0, :, 0, 0] == 0).sum()) < 6


def test_what_cannot_be_traced_is_sampled_as_a_whole() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.last = nn.Dropout(0.5), nn.Linear(16, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.drop(x) if len(x) > 0 and x.sum() != 7 else x)

    module = Branching()
    sampled = logits(split_at_dropout(module), torch.randn(3, 16), 2)
    assert not torch.allclose(sampled[:, 0], sampled[:, 1])
    assert isinstance(module.drop, nn.Dropout)

    module.drop.p = 0.0
    still = split_at_dropout(module)
    assert not still.is_random
    module.drop = nn.Identity()
    with pytest.raises(NetworkError, match="no dropout"):
        split_at_dropout(module)


def test_features_of_mirrored_images_are_computed_once() -> None:
    network = build_network("resnet-slim", (20, 16, 3), 4, width=0.5, dropout=0.5, mirror=True)
    x = torch.randn(6, 3, 20, 16, generator=torch.Generator().manual_seed(0))
    network(x)  # moves the statistics of the norms
    network.eval()
    split = split_at_dropout(network)
    assert [type(module) for module in split.trunk.modules()].count(nn.Conv2d) > 0
    assert not any(isinstance(module, nn.Conv2d) for module in split.tail.modules())
    with torch.no_grad():
        (features,) = split.trunk(x)
        torch.testing.assert_close(features, network.features(x))
        assert len({sample.sum().item() for sample in split.samples(x, 5)}) == 5


def test_a_rate_of_0_drops_nothing() -> None:
    module, x = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.0), nn.Linear(4, 2)), torch.randn(5, 3)
    split = split_at_dropout(module)
    assert not split.is_random
    torch.testing.assert_close(logits(split, x, 2), module(x).unsqueeze(1).expand(-1, 2, -1))


def test_a_network_without_dropout_is_refused() -> None:
    with pytest.raises(NetworkError, match="no dropout"):
        split_at_dropout(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    with pytest.raises(NetworkError, match="no dropout"):
        set_dropout(Network(nn.Linear(3, 4), nn.Linear(4, 2)), 0.5)


@pytest.mark.parametrize("name", ["lenet", "vgg", "resnet-slim", "dense"])
def test_a_rate_that_was_set_is_that_of_a_network_built_with_it(name: str, tmp_path: Path) -> None:
    def rates(network: nn.Module) -> list[float]:
        return [m.p for m in network.modules() if isinstance(m, nn.Dropout)]

    network = build_network(name, (8, 8, 1), 5, width=0.1)
    built = build_network(name, (8, 8, 1), 5, width=0.1, dropout=0.15)
    before = rates(network)
    set_dropout(network, 0.15)
    assert rates(network) == rates(built) != before
    assert rates(network)[-2:] == [0.15, 0.15][: len(before)]
    save(network, tmp_path / "kept")
    assert rates(load(tmp_path / "kept")) == rates(network)


def test_rates_of_all_layers(tmp_path: Path) -> None:
    def rates(network: nn.Module) -> list[float]:
        return [m.p for m in network.modules() if isinstance(m, nn.Dropout)]

    network = build_network("vgg", (8, 8, 1), 5, width=0.1)
    assert rates(network) == [0.2, 0.3, 0.4, 0.5, 0.5]
    settings = TrainSettings(dropout=(0.0, 0.1, 0.2, 0.3, 0.4), min_steps=1, max_steps=1)
    train(network, np.zeros((2, 8, 8, 1), np.uint8), np.arange(2), settings)
    assert rates(network) == [0.0, 0.1, 0.2, 0.3, 0.4]
    save(network, tmp_path / "kept")
    assert rates(load(tmp_path / "kept")) == rates(network)
    with pytest.raises(NetworkError, match="2 dropout rates for 5 layers"):
        set_dropout(network, (0.1, 0.2))
    with pytest.raises(NetworkError, match="one rate in lenet"):
        set_dropout(build_network("lenet", (8, 8, 1), 5), (0.1, 0.2))
    with pytest.raises(NetworkError, match="from 0 to below 1"):
        TrainSettings(dropout=(0.1, 1.0))
