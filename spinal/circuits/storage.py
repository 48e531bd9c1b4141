"""Circuits on disk: one safetensors file, with the structure in its header."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from spinal.errors import FileFormatError
from spinal.files import read_tensors, write_tensors

if TYPE_CHECKING:
    from spinal.circuits.circuit import Circuit

FORMAT = "spinal.circuit/2"


def save(circuit: Circuit, path: Path) -> None:
    """Write a circuit to a file, atomically."""
    structure = {"class": type(circuit).__name__, "arguments": circuit.config()}
    write_tensors(path, circuit.state_dict(), FORMAT, structure)


def load(path: Path, structures: Iterable[type[Circuit]]) -> Circuit:
    """Read a circuit, on the CPU.

    Args:
        path: the file.
        structures: the classes that it may hold.

    Raises:
        FileFormatError: if the file was not written by `save` or is damaged.
    """
    structure, tensors = read_tensors(path, FORMAT)
    by_name: dict[str, Callable[..., Circuit]] = {kind.__name__: kind for kind in structures}
    try:
        circuit = by_name[structure["class"]](**structure["arguments"])
        circuit.to(tensors["prior_logits"].dtype).load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{path}: the circuit in it does not fit its header ({error})"
        ) from error
    return circuit
