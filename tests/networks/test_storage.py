"""Networks on disk: they come back as they were, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from spinal.errors import FileFormatError
from spinal.networks import Network, build_network, load, load_weights, save, set_dropout, train
from spinal.networks.training import TrainSettings

QUICK = TrainSettings(min_steps=5, max_steps=5)


@pytest.mark.parametrize("name", ["lenet", "vgg", "resnet-slim", "dense"])
def test_a_network_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 9, 8, 2), np.uint8)
    network = build_network(name, (9, 8, 2), 4, width=0.1)
    train(network, images, np.arange(20) % 4, QUICK)
    save(network, tmp_path / "network.safetensors")
    again = load(tmp_path / "network.safetensors")
    assert again.config == network.config
    assert not again.training
    assert torch.equal(again(again.to_input(images)), network(network.to_input(images)))
    assert [path.name for path in tmp_path.iterdir()] == ["network.safetensors"]


def test_a_network_that_was_brought_takes_its_weights_back(tmp_path: Path) -> None:
    def brought() -> Network:
        layer = nn.Linear(6, 6)
        return Network(nn.Sequential(layer, nn.ReLU(), layer), nn.Linear(6, 2))  # used twice

    network, other = brought(), brought()
    network.preprocess.set(np.arange(6), np.ones(6))
    save(network, tmp_path / "weights")
    load_weights(other, tmp_path / "weights")
    x = np.random.default_rng(0).normal(size=(3, 6))
    assert torch.equal(other(other.to_input(x)), network(network.to_input(x)))
    with pytest.raises(FileFormatError, match="use load_weights"):
        load(tmp_path / "weights")
    with pytest.raises(FileFormatError, match="do not fit"):
        load_weights(build_network("dense", (6,), 2), tmp_path / "weights")


def test_what_is_no_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "network"
    with pytest.raises(FileFormatError, match="no such file"):
        load(path)
    save(build_network("dense", (6,), 2), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="damaged"):
        load(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(FileFormatError, match="not a spinal network"):
        load(path)
    for config in ('{"name": "lenet5"}', "[1", '{"name": "dense", "input_shape": [3]}'):
        save_file({"a": torch.zeros(1)}, path, {"format": "spinal.network/2", "network": config})
        with pytest.raises(FileFormatError, match="header"):
            load(path)


def test_input_dropout_of_0_keeps_its_layer(tmp_path: Path) -> None:
    network = build_network("dense", (4,), 3, input_dropout=0.2)
    set_dropout(network, 0.0)
    save(network, tmp_path / "network.safetensors")
    again = load(tmp_path / "network.safetensors")
    assert again.state_dict().keys() == network.state_dict().keys()
