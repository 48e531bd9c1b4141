"""Experiments described by TOML files, with scales; every key is checked.

A scale is a table of changes to the rest of the file, such as ``[scale.paper]``, selected by
``name@paper``. The default scale is `DEFAULT_SCALE`. Single keys can be changed when a file is
loaded, as by ``--set`` on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

from spinal.errors import SpinalError, suggestion
from spinal.files import tomllib as tomllib
from spinal.settings import from_mapping

#: The scale at full size. If a file has no table for it, the file itself is this scale.
DEFAULT_SCALE = "tuned"

_WORD = re.compile(r"[A-Za-z][\w.:@/-]*")

T = TypeVar("T")


class ExperimentFiles(Generic[T]):
    """The files of one kind of experiment: the files that come with spinal, and any others.

    Args:
        kind: the dataclass that a file describes, with a ``name`` and a ``title``.
        folder: name of the folder, beside this module, with the files that come with spinal.
        called: the word for such an experiment in messages.
    """

    def __init__(self, kind: type[T], folder: str, called: str) -> None:
        self.kind, self.called = kind, called
        self.folder = resources.files("spinal.experiments") / folder

    def names(self) -> list[str]:
        """The names of the files that come with spinal."""
        files = (path.name for path in self.folder.iterdir())
        return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))

    def text(self, name: str) -> str:
        """The text of a file that comes with spinal, for copying and editing."""
        return (self.folder / f"{name}.toml").read_text("utf-8")

    def load(self, name_or_path: str | Path, changes: Iterable[str] = ()) -> T:
        """Load an experiment that comes with spinal, by name, or any TOML file.

        Args:
            name_or_path: may end in ``@`` and a scale.
            changes: changed values as ``KEY=VALUE``, such as ``network.width=0.5``. A key may be
                dotted, a value is TOML. The name, and therefore the folder of the runs, stays the
                same; ``name=wide`` changes it.

        Raises:
            SpinalError: if there is no such file, or a key or value in it is wrong.
        """
        where, scale = _split_scale(str(name_or_path))
        name, values = self._read(where)
        scales = _scales(where, values)
        if scale not in scales:
            raise SpinalError(f"{where}: no scale {scale!r}: {suggestion(scale, scales)}")
        # All scales are checked, so that mistakes in a file are reported at its first use.
        loaded = {key: self._at_scale(name, where, values, key) for key in scales}
        changed: dict[str, Any] = {}
        for change in changes:
            changed = merged(changed, _read_change(change))
        return self._at_scale(name, where, values, scale, changed) if changed else loaded[scale]

    def scales(self, name_or_path: str | Path) -> list[str]:
        """The names of the scales of an experiment, including `DEFAULT_SCALE`."""
        where, _ = _split_scale(str(name_or_path))
        return list(_scales(where, self._read(where)[1]))

    def _read(self, where: str) -> tuple[str, dict[str, Any]]:
        """Name and content of a file."""
        path = Path(where)
        if path.suffix == ".toml":
            if not path.is_file():
                raise SpinalError(f"{path}: no such {self.called} file")
            content, name = path.read_bytes(), path.stem
        else:
            name = where
            if name not in self.names():
                hint = suggestion(name, self.names())
                raise SpinalError(
                    f"no {self.called} {name!r}: {hint}, or give the path of a .toml file"
                )
            content = self.text(name).encode()
        try:
            return name, tomllib.loads(content.decode())
        except ValueError as error:  # not TOML, or not UTF-8
            raise SpinalError(f"{where}: not a TOML file: {error}") from error

    def _at_scale(
        self,
        name: str,
        where: str,
        values: Mapping[str, Any],
        scale: str,
        changed: Mapping[str, Any] | None = None,
    ) -> T:
        table = {"name": name, **values}
        table.pop("scale", None)
        if scale != DEFAULT_SCALE:
            table["name"] = f"{name}@{scale}"
            table["title"] = f"{table.get('title', name)} ({scale})"
            where = f"{where}@{scale}"
        different = _scales(where, values)[scale]
        return from_mapping(self.kind, merged(merged(table, different), changed or {}), where)


def _split_scale(text: str) -> tuple[str, str]:
    where, _, scale = text.rpartition("@")
    # An @ may also be part of the name of a folder or file.
    return (
        (where, scale) if where and "/" not in scale and "." not in scale else (text, DEFAULT_SCALE)
    )


def _scales(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    scales = values.get("scale", {})
    if not isinstance(scales, dict) or not all(
        isinstance(table, dict) for table in scales.values()
    ):
        raise SpinalError(f"{where}, scale: give tables, such as [scale.cpu]")
    return {DEFAULT_SCALE: {}, **scales}


def merged(values: Mapping[str, Any], different: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` updated by ``different``, recursively.

    Hyphens and underscores in keys are equivalent.
    """
    result = dict(values)
    spellings = {key.replace("_", "-"): key for key in values}
    for key, value in different.items():
        key = spellings.get(key.replace("_", "-"), key)
        old = result.get(key)
        both_tables = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both_tables else value  # type: ignore[arg-type]
    return result


def _read_change(text: str) -> dict[str, Any]:
    """``KEY=VALUE`` as a table. A word needs no quotes, which a shell would remove."""
    key, equals, value = text.partition("=")
    if _WORD.fullmatch(value) and value not in ("true", "false", "inf", "nan"):
        value = f'"{value}"'
    try:
        return tomllib.loads(f"{key}{equals}{value}")
    except tomllib.TOMLDecodeError as error:
        raise SpinalError(
            f"{text!r} is not KEY=VALUE with a TOML value, such as network.width=0.5 ({error})"
        ) from error
