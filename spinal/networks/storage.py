"""Networks on disk: one safetensors file, with the arguments of the network in its header."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from spinal.errors import FileFormatError
from spinal.networks.architectures import build_network
from spinal.networks.network import Network

FORMAT = "spinal.network/1"


def save(network: Network, path: str | Path) -> None:
    """Write to a neighbouring file, flush, rename: a crash leaves the old file or the new one."""
    path = Path(path)
    # Copies, so that weights that are used twice are written twice.
    tensors = {
        name: t.detach().cpu().clone().contiguous() for name, t in network.state_dict().items()
    }
    partial = path.with_name(path.name + ".part")
    metadata = {"format": FORMAT, "network": json.dumps(network.config)}
    save_file(tensors, partial, metadata=metadata)
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: str | Path) -> Network:
    """Read a network that was built by name, on the CPU, in evaluation mode.

    Raises:
        FileFormatError: if the file is not one that `save` wrote, or was damaged; or if the network
            was not built by name, so that only `load_weights` can read it.
    """
    path = Path(path)
    config, tensors = _read(path)
    if not config:
        raise FileFormatError(
            f"{path}: the weights of a network that was not built by name: "
            "make that network anew, and use load_weights"
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
        FileFormatError: if they do not fit, or the file is not one that `save` wrote.
    """
    _fill(network, _read(Path(path))[1], Path(path))


def _read(path: Path) -> tuple[dict, dict[str, Tensor]]:
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"{path}: not a safetensors file, or damaged ({error})") from error
    if metadata.get("format") != FORMAT:
        raise FileFormatError(
            f"{path}: a safetensors file, but not a spinal network "
            f"(expected format {FORMAT!r}, found {metadata.get('format')!r})"
        )
    try:
        return json.loads(metadata["network"]), tensors
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"{path}: its header is damaged ({error})") from error


def _fill(network: Network, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise FileFormatError(f"{path}: the weights do not fit the network ({error})") from error
