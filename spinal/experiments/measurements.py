"""Measurements: one seed of an experiment that has no rounds, part by part.

``<out>/<experiment>/seed-<s>/`` holds ``run.toml``, with all settings and versions, and
``parts.jsonl``, with a line for each finished part. A part depends only on the settings and the
seed, so an interrupted measurement resumes with the missing parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from spinal.runs import RunFolder
from spinal.threads import single_thread


class Described(Protocol):
    """Settings with a name."""

    @property
    def name(self) -> str:
        """Name of the folder."""

    def to_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for TOML."""


@dataclass(frozen=True)
class Measurement:
    """One seed of an experiment, in its folder under ``out``."""

    experiment: Described
    seed: int
    out: Path

    @property
    def folder(self) -> Path:
        """The folder of the measurement."""
        return self.out / self.experiment.name / f"seed-{self.seed}"

    @property
    def store(self) -> RunFolder:
        """The folder, with its settings and parts."""
        settings = {"seed": self.seed, "experiment": self.experiment.to_mapping()}
        return RunFolder(self.folder, "parts.jsonl", settings, free=("experiment.title",))

    def parts(self) -> list[dict[str, Any]]:
        """The finished parts."""
        return self.store.lines()

    def add(self, part: dict[str, Any]) -> None:
        """Store a finished part."""
        self.store.append(part)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Lock the folder, check and write its settings, and limit torch to one thread.

        All of this applies inside the ``with`` block.

        Raises:
            RunBusyError: If another process holds the lock.
            SpinalError: If the folder has other settings.
        """
        store = self.store
        with store.lock(), single_thread():
            store.check_settings()
            store.write_settings()
            yield


class StepBar:
    """A progress bar for the current step, on a terminal only, and a line for each result."""

    def __init__(self) -> None:
        self.console = Console()
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
        """Replace the bar by a new one; return a function that advances it.

        The function fits the ``on_step`` argument of `train` and `fit`.
        """
        if self._task is not None:
            self._bars.remove_task(self._task)
        task = self._task = self._bars.add_task(what, total=None)
        return lambda step, steps, _: self._bars.update(task, completed=step, total=steps)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(line, highlight=False, soft_wrap=True)
