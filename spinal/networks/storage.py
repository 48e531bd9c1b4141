"""Networks on disk: one safetensors file, with the arguments of the network in its header."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from spinal.errors import FileFormatError
from spinal.files import read_tensors, write_tensors
from spinal.networks.architectures import build_network
from spinal.networks.network import Network

FORMAT = "spinal.network/2"


def save(network: Network, path: str | Path) -> None:
    """Write a network to a file, atomically."""
    write_tensors(Path(path), network.state_dict(), FORMAT, network.config)


def load(path: str | Path) -> Network:
    """Read a network that was built by name, on the CPU, in evaluation mode.

    Raises:
        FileFormatError: if the file was not written by `save` or is damaged, or if the network was
            not built by name (use `load_weights` then).
    """
    path = Path(path)
    config, tensors = read_tensors(path, FORMAT)
    if not config:
        raise FileFormatError(
            f"{path}: the weights of a network that was not built by name: "
            "construct that network, and use load_weights"
        )
    try:
        network = build_network(**config)
    except (TypeError, ValueError) as error:
        raise FileFormatError(
            f"{path}: no network can be built from its header ({error})"
        ) from error
    _fill(network, tensors, path)
    return network.eval()


def load_weights(network: Network, path: str | Path) -> None:
    """Read the weights that `save` wrote into a network of the same structure.

    Raises:
        FileFormatError: if they do not fit, or the file was not written by `save`.
    """
    path = Path(path)
    _fill(network, read_tensors(path, FORMAT)[1], path)


def _fill(network: Network, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise FileFormatError(f"{path}: the weights do not fit the network ({error})") from error
