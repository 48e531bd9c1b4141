"""Measurements on disk: one seed of an experiment that has no rounds, part by part.

``<out>/<experiment>/seed-<s>/`` holds ``run.toml``, all settings and the versions that made it, and
``parts.jsonl``, a line for each part that is done. A part depends on the settings and the seed
alone: what was stopped goes on with the parts that are missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import filelock
import tomli_w
import torch
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from spinal.errors import FileFormatError, SpinalError
from spinal.experiments.origin import origin
from spinal.experiments.runs import RunBusyError, read_rounds
from spinal.experiments.scales import tomllib
from spinal.files import write_text


class Described(Protocol):
    """Settings with a name."""

    @property
    def name(self) -> str:
        """Of the folder."""

    def to_mapping(self) -> dict[str, Any]:
        """As plain values, for TOML."""


@dataclass(frozen=True)
class Measurement:
    """One seed of an experiment, in its folder under ``out``."""

    experiment: Described
    seed: int
    out: Path

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.out / self.experiment.name / f"seed-{self.seed}"

    def parts(self) -> list[dict[str, Any]]:
        """The parts that are done."""
        return read_rounds(self.folder / "parts.jsonl")

    def add(self, part: dict[str, Any]) -> None:
        """Keep one more part; the file is there whole at any moment."""
        text = "".join(json.dumps(each) + "\n" for each in [*self.parts(), part])
        write_text(self.folder / "parts.jsonl", text)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Inside, the folder is there, of these settings, and no other process works in it.

        Raises:
            RunBusyError: if another process is at it.
            SpinalError: if the folder was made with other settings.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise RunBusyError(f"{self.folder}: another process is working on it") from error
        try:
            # One thread: the same sums in the same order on every machine.
            torch.set_num_threads(1)
            self._write_settings()
            yield
        finally:
            lock.release()

    def _write_settings(self) -> None:
        path = self.folder / "run.toml"
        settings = self.experiment.to_mapping()
        if path.exists():
            kept = read_settings(path).get("experiment", {})
            wrong = [
                key
                for key in sorted(kept.keys() | settings.keys())
                if key != "title" and kept.get(key) != settings.get(key)
            ]
            if wrong:
                raise SpinalError(
                    f"{self.folder} was made with other settings ({', '.join(wrong)}): choose "
                    "another --out, or delete it"
                )
        text = tomli_w.dumps({"seed": self.seed, "experiment": settings, **origin()})
        write_text(path, text)


def read_settings(path: Path) -> dict[str, Any]:
    """A ``run.toml``."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: missing or damaged ({error})") from error


class StepBar:
    """A bar for what is being done, on a terminal; a line for what is done, anywhere."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> StepBar:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def begin(self, what: str) -> Callable[[int, int, float], None]:
        """Show a new bar in the place of the last; what is returned takes steps, and of how many.

        It fits ``on_step`` of everything that is trained.
        """
        if self._task is not None:
            self._bars.remove_task(self._task)
        task = self._task = self._bars.add_task(what, total=None)
        return lambda step, steps, _: self._bars.update(task, completed=step, total=steps)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, highlight=False, soft_wrap=True)
