"""A resumable folder of results, written line by line by one process at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
import tomli_w

from spinal.data import dataset_name
from spinal.errors import SpinalError
from spinal.files import read_toml, write_text
from spinal.runs.lines import read_lines, write_lines
from spinal.runs.origin import origin

_SETTINGS = "run.toml"
#: Tables of ``run.toml`` with the origin of results; they are not settings.
_ORIGIN = ("earlier", "machine", "versions")


class RunBusyError(SpinalError):
    """Another process is working on the same results."""


@dataclass(frozen=True)
class RunFolder:
    """The results of one run, measurement or tuning, as lines in a folder.

    Attributes:
        path: The folder. It need not exist yet.
        lines_name: Name of the file of lines.
        settings: All settings that determine the lines, as plain values for TOML.
        free: Settings, as ``table.key``, that may change when a run is resumed.
        lock_name: Name of the lock file.
    """

    path: Path
    lines_name: str = "rounds.jsonl"
    settings: Mapping[str, Any] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    lock_name: str = ".lock"

    @property
    def lines_path(self) -> Path:
        """The file of lines."""
        return self.path / self.lines_name

    def lines(self) -> list[dict[str, Any]]:
        """The finished lines.

        Raises:
            FileFormatError: If one of them is damaged.
        """
        return read_lines(self.lines_path)

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace all lines."""
        write_lines(self.lines_path, lines)

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line, atomically."""
        self.write([*self.lines(), line])

    @contextmanager
    def lock(self, wait: float = 0.0) -> Iterator[None]:
        """Create the folder, and lock it against other processes.

        Args:
            wait: Seconds to wait for another process to finish.

        Raises:
            RunBusyError: If another process still holds the lock.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(self.path / self.lock_name)
        try:
            lock.acquire(timeout=wait)
        except filelock.Timeout as error:
            raise RunBusyError(f"{self.lines_path}: another process is working on it") from error
        try:
            yield
        finally:
            lock.release()

    def check_settings(self) -> None:
        """Check that the results in the folder, if any, have the same settings.

        Raises:
            SpinalError: If not. The message names the settings that differ.
        """
        saved = read_settings(self.path)
        ignored = (*_ORIGIN, *self.free)
        different = _differences(saved, self.settings, ignored) if saved else []
        if different:
            raise SpinalError(
                f"{self.path} was made with other settings ({'; '.join(different)}): "
                "choose another --out, or delete it"
            )

    def write_settings(self) -> None:
        """Write ``run.toml``: the settings, and the versions and machine of new lines.

        Different versions or machines of earlier lines are listed under ``earlier``.
        """
        saved, now, done = read_settings(self.path), origin(), len(self.lines())
        earlier = saved.get("earlier", [])
        before = {name: saved.get(name, {}) for name in now}
        if done and before != now:
            earlier = [*earlier, {self.lines_path.stem: done, **before}]
        content = {**self.settings, **({"earlier": earlier} if earlier else {}), **now}
        write_text(self.path / _SETTINGS, tomli_w.dumps(content))


def seed_of(folder: Path) -> int | None:
    """The seed in the name of a folder, ``seed-N``; None for other names, such as of copies."""
    number = folder.name.removeprefix("seed-")
    return int(number) if number.isdecimal() else None


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the ``run.toml`` of a folder; empty if there is none.

    Raises:
        FileFormatError: If it is damaged.
    """
    path = folder / _SETTINGS
    return read_toml(path) if path.exists() else {}


def _spelling(value: Any) -> Any:
    """The value, with a dataset's name in its usual spelling: ``cifar10`` is ``cifar-10``."""
    return dataset_name(value) if isinstance(value, str) else value


def _differences(
    saved: Mapping[str, Any], current: Mapping[str, Any], ignored: tuple[str, ...], prefix: str = ""
) -> list[str]:
    """The settings that differ, except ignored ones, as sentences."""
    sentences = []
    for key in sorted(saved.keys() | current.keys()):
        name = f"{prefix}{key}"
        if name in ignored:
            continue
        old, new = saved.get(key), current.get(key)
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            sentences += _differences(old or {}, new or {}, ignored, f"{name}.")
        elif _spelling(old) != _spelling(new):
            sentences.append(f"{name} was {old!r}, is {new!r}")
    return sentences
