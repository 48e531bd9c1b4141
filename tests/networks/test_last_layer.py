"""A network without its last layer, and that layer as plain numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from spinal.networks import Network, NetworkError, build_network


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_features_from_what_is_below(norm: bool, bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4, bias=bias)]
    if norm:
        layers.append(nn.BatchNorm1d(4))
    network = Network(nn.Sequential(*layers, nn.ReLU()), nn.Linear(4, 3))
    network(3 + 2 * torch.randn(50, 6, generator=generator))  # moves the statistics of the norm
    network.eval()
    x = torch.randn(20, 6, generator=generator)
    last = network.last_layer()
    below = nn.Sequential(*last.below)(x)
    assert below.shape == (20, 5)
    torch.testing.assert_close(
        torch.relu(below @ last.weight.T + last.bias), network.features(x), rtol=1e-5, atol=1e-6
    )


def test_means_over_a_residual_block_with_the_identity() -> None:
    generator = torch.Generator().manual_seed(0)
    network = build_network("resnet-slim", (20, 16, 3), 4, width=0.5)
    network(torch.randn(9, 3, 20, 16, generator=generator))  # moves the statistics of the norms
    network.eval()
    x = torch.randn(5, 3, 20, 16, generator=generator)
    last = network.last_layer()
    below = nn.Sequential(*last.below)(x)
    torch.testing.assert_close(torch.relu(below @ last.weight.T + last.bias), network.features(x))
    with pytest.raises(NetworkError, match="dense layer and a ReLU"):
        build_network("resnet-slim", (20, 16, 3), 4, width=0.5, mirror=True).last_layer()


def test_networks_by_name() -> None:
    dense = build_network("dense", (7,), 2).last_layer()
    assert dense.weight.size(1) == 7
    assert all(isinstance(module, nn.Flatten | nn.Dropout) for module in dense.below)
    for name in ("lenet", "vgg"):
        assert build_network(name, (32, 32, 3), 2, width=0.1).last_layer().below


@pytest.mark.parametrize(
    "body", [nn.Sequential(nn.Linear(3, 2)), nn.Sequential(nn.ReLU()), nn.Sequential()]
)
def test_other_ends_are_refused(body: nn.Module) -> None:
    with pytest.raises(NetworkError, match="dense layer and a ReLU"):
        Network(body, nn.Linear(2, 2)).last_layer()
