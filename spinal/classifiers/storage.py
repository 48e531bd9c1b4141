"""Conversion of fitted classifiers to named tensors, for files, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

import torch
from torch import Tensor

from spinal.circuits import Circuit
from spinal.classifiers.units import UNITS
from spinal.errors import FileFormatError

T = TypeVar("T")


def to_tensors(part: Any) -> dict[str, Tensor]:
    """All tensors in a dataclass and nested dataclasses, by path; circuits are left out."""
    tensors: dict[str, Tensor] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Tensor):
            tensors[field.name] = value
        elif isinstance(value, str):
            tensors[field.name] = torch.tensor(UNITS.index(value))
        elif is_dataclass(value):
            tensors |= {f"{field.name}/{name}": t for name, t in to_tensors(value).items()}
    return tensors


def from_tensors(
    kind: type[T], tensors: dict[str, Tensor], where: str, circuit: Circuit | None = None
) -> T:
    """The inverse of `to_tensors`.

    Args:
        kind: the dataclass.
        tensors: the tensors by path.
        where: their source, for messages.
        circuit: the circuit to insert.

    Raises:
        FileFormatError: if a tensor is missing.
    """
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        optional = type(None) in get_args(hint)
        inner = get_args(hint)[0] if optional else hint
        below = f"{name}/"
        nested = {n.removeprefix(below): t for n, t in tensors.items() if n.startswith(below)}
        if inner is Circuit:
            values[name] = circuit
        elif optional and not nested and name not in tensors:
            values[name] = None
        elif is_dataclass(inner):
            values[name] = from_tensors(inner, nested, where, circuit)  # type: ignore[arg-type]
        elif name not in tensors:
            raise FileFormatError(f"{where}: damaged, without {name}; delete it")
        else:
            tensor = tensors[name]
            values[name] = tensor if inner is Tensor else UNITS[int(tensor)]
    return kind(**values)
