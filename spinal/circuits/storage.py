"""Circuits on disk: one safetensors file, with the structure as JSON in its header."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from spinal.errors import FileFormatError

if TYPE_CHECKING:
    from spinal.circuits.circuit import Circuit

FORMAT = "spinal.circuit/1"


def save(circuit: Circuit, path: Path) -> None:
    """Write to a neighbouring file, flush, rename: a crash leaves the old file or the new one."""
    structure = {"class": type(circuit).__name__, "arguments": circuit.config()}
    tensors = {name: t.detach().contiguous().cpu() for name, t in circuit.state_dict().items()}
    partial = path.with_name(path.name + ".part")
    save_file(tensors, partial, metadata={"format": FORMAT, "structure": json.dumps(structure)})
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: Path) -> Circuit:
    """Read a circuit, on the CPU.

    Raises:
        FileFormatError: if the file is not one that `save` wrote, or was damaged.
    """
    from spinal.circuits.dgc import DGCSPN
    from spinal.circuits.random import RandomSPN

    structures: dict[str, type[Circuit]] = {"DGCSPN": DGCSPN, "RandomSPN": RandomSPN}
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
            f"{path}: a safetensors file, but not a spinal circuit "
            f"(expected format {FORMAT!r}, found {metadata.get('format')!r})"
        )
    try:
        structure = json.loads(metadata["structure"])
        circuit = structures[structure["class"]](**structure["arguments"])
        circuit.to(next(iter(tensors.values())).dtype).load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, StopIteration) as error:
        raise FileFormatError(
            f"{path}: the circuit in it does not fit its header ({error})"
        ) from error
    return circuit
