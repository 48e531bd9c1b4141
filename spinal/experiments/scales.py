"""Experiments as TOML files in which every key is checked, each at several scales.

A file may have scales: tables of what differs from the rest of it, ``[scale.paper]`` and so on,
which ``name@paper`` chooses. Without one, the scale is `DEFAULT_SCALE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

from spinal.errors import SpinalError, suggestion
from spinal.files import tomllib as tomllib
from spinal.settings import from_mapping

#: Settings that train, at full size. It needs no table where it is what the file says anyway.
DEFAULT_SCALE = "tuned"

T = TypeVar("T")


class Shelf(Generic[T]):
    """The files of one kind of experiment: those that come with spinal, and any others.

    Args:
        kind: the dataclass that a file describes; it has a ``name`` and a ``title``.
        folder: of the files that come with spinal, beside this module.
        called: what such an experiment is called, for messages.
    """

    def __init__(self, kind: type[T], folder: str, called: str) -> None:
        self.kind, self.called = kind, called
        self.folder = resources.files("spinal.experiments") / folder

    def names(self) -> list[str]:
        """Those that come with spinal."""
        files = (path.name for path in self.folder.iterdir())
        return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))

    def text(self, name: str) -> str:
        """The file of one that comes with spinal: to be copied and edited."""
        return (self.folder / f"{name}.toml").read_text("utf-8")

    def load(self, name_or_path: str | Path) -> T:
        """One that comes with spinal, by name, or any TOML file; ``@`` and a scale may follow.

        Raises:
            SpinalError: if there is none, or something in it is wrong; it says what, and what may
                have been meant.
        """
        where, scale = _split_scale(str(name_or_path))
        name, values = self._read(where)
        scales = _scales(where, values)
        if scale not in scales:
            raise SpinalError(f"{where}: no scale {scale!r}: {suggestion(scale, scales)}")
        # Every scale is checked, whichever is wanted: a mistake in a file is found at its first
        # use.
        return {each: self._at_scale(name, where, values, each) for each in scales}[scale]

    def scales(self, name_or_path: str | Path) -> list[str]:
        """The scales that one comes at; `DEFAULT_SCALE` is always among them."""
        where, _ = _split_scale(str(name_or_path))
        return list(_scales(where, self._read(where)[1]))

    def _read(self, where: str) -> tuple[str, dict[str, Any]]:
        """Name and content of a file."""
        path = Path(where)
        if path.suffix == ".toml":
            if not path.is_file():
                raise SpinalError(f"{path}: no such {self.called} file")
            text, name = path.read_text(encoding="utf-8"), path.stem
        else:
            name = where
            if name not in self.names():
                hint = suggestion(name, self.names())
                raise SpinalError(
                    f"no {self.called} {name!r}: {hint}, or give the path of a .toml file"
                )
            text = self.text(name)
        try:
            return name, tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SpinalError(f"{where}: not a TOML file: {error}") from error

    def _at_scale(self, name: str, where: str, values: Mapping[str, Any], scale: str) -> T:
        common = {"name": name, **values}
        common.pop("scale", None)
        different = _scales(where, values)[scale]
        if scale == DEFAULT_SCALE:
            return from_mapping(self.kind, _merged(common, different), where)
        named = {"name": f"{name}@{scale}", "title": f"{common.get('title', name)} ({scale})"}
        merged = _merged({**common, **named}, different)
        return from_mapping(self.kind, merged, f"{where}@{scale}")


def _split_scale(text: str) -> tuple[str, str]:
    where, _, scale = text.rpartition("@")
    # An @ may as well be part of a folder's or a file's name.
    return (
        (where, scale) if where and "/" not in scale and "." not in scale else (text, DEFAULT_SCALE)
    )


def _scales(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    scales = values.get("scale", {})
    if not isinstance(scales, dict) or not all(isinstance(each, dict) for each in scales.values()):
        raise SpinalError(f"{where}, scale: give tables, such as [scale.cpu]")
    return {DEFAULT_SCALE: {}, **scales}


def _merged(values: Mapping[str, Any], different: Mapping[str, Any]) -> dict[str, Any]:
    """``values``, with ``different`` taking their place, table by table."""
    merged = dict(values)
    for key, value in different.items():
        old = merged.get(key)
        both_tables = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(old, value) if both_tables else value  # type: ignore[arg-type]
    return merged
