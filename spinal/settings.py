"""Settings: frozen dataclasses, read from and written to TOML and JSON, every key checked."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from spinal.errors import SpinalError, suggestion

T = TypeVar("T")


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str, base: T | None = None) -> T:
    """Make the dataclass ``cls`` from plain values; nested tables become nested dataclasses.

    Args:
        cls: a dataclass.
        values: settings that differ from ``base``, or from the defaults.
        where: source of the values, for messages: a file, or a table in it.
        base: settings to start from.

    Raises:
        SpinalError: for an unknown key (with the key that was probably meant), a value of the wrong
            type, or a missing key.
    """
    hints = get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    known = {name.replace("_", "-"): name for name in fields}
    made: dict[str, Any] = {}
    for key, value in values.items():
        name = known.get(key.replace("_", "-"))
        if name is None:
            hint = suggestion(key.replace("_", "-"), known)
            raise SpinalError(f"{where}: unknown key {key!r}: {hint}")
        inner = getattr(base, name) if base is not None else None
        made[name] = _converted(hints[name], value, f"{where}, {key}", inner)
    if base is not None:
        return dataclasses.replace(base, **made)  # type: ignore[type-var]
    required = dataclasses.MISSING
    missing = [
        name.replace("_", "-")
        for name, f in fields.items()
        if f.default is required and f.default_factory is required and name not in made
    ]
    if missing:
        raise SpinalError(f"{where}: {', '.join(missing)} must be given")
    return cls(**made)


def to_mapping(settings: Any, *, none: bool = False) -> dict[str, Any]:
    """The settings of a dataclass, its init fields, as plain values.

    Args:
        settings: the dataclass.
        none: keep values that are None, for JSON; TOML cannot express them.
    """
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        if not field.init:
            continue
        value = getattr(settings, field.name)
        if value is None and not none:
            continue
        if dataclasses.is_dataclass(value):
            value = to_mapping(value, none=none)
        plain[field.name.replace("_", "-")] = list(value) if isinstance(value, tuple) else value
    return plain


def _converted(hint: Any, value: Any, where: str, base: Any) -> Any:
    """``value`` converted to the type of the annotation ``hint``."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        options = [choice for choice in choices if choice is not type(None)]
        if value is None and len(options) < len(choices):
            return None
        for option in options[:-1]:
            try:
                return _converted(option, value, where, base)
            except SpinalError:
                continue
        return _converted(options[-1], value, where, base)
    if origin is Literal:
        if value in choices:
            return value
        raise SpinalError(f"{where}: {value!r} is none of {', '.join(map(repr, choices))}")
    if origin is tuple:
        if isinstance(value, list | tuple) and (choices[-1] is ... or len(choices) == len(value)):
            inner = [choices[0]] * len(value) if choices[-1] is ... else choices
            return tuple(_converted(h, v, where, None) for h, v in zip(inner, value, strict=True))
    elif origin is dict:
        if isinstance(value, Mapping):
            return {
                str(k): _converted(choices[1], v, f"{where}, {k}", None) for k, v in value.items()
            }
    elif hint is Any:
        return value
    elif dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        if isinstance(value, Mapping):
            return from_mapping(hint, value, where, base)  # type: ignore[arg-type]
    elif hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    wanted = getattr(hint, "__name__", str(hint))
    raise SpinalError(f"{where}: {value!r} is not of type {wanted}")
