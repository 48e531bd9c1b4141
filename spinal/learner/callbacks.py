"""Callbacks: called after every round and every step of training.

`spinal.learner.trackers` has callbacks that log to MLflow and TensorBoard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.progress import Progress, TaskID

if TYPE_CHECKING:
    from spinal.learner.learner import ActiveLearner

#: Called with the part in training (``network`` or ``posterior``), the step, and the number of
#: steps.
OnStep = Callable[[str, int, int], None]


class Callback:
    """Does nothing: override the methods that you need."""

    def on_step(self, learner: ActiveLearner, part: str, step: int, steps: int) -> None:
        """Called in a fit, after each step of ``network`` or ``posterior``."""

    def on_round(self, learner: ActiveLearner) -> None:
        """Called at the end of a fit."""

    def on_measured(self, learner: ActiveLearner, values: Mapping[str, float]) -> None:
        """Called after each round of an experiment, with measurements on the test points."""


class ProgressBar(Callback):
    """A bar for each fit, in a terminal or, with ipywidgets, in a notebook.

    Args:
        options: options of `rich.progress.Progress`.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def on_step(self, learner: ActiveLearner, part: str, step: int, steps: int) -> None:
        if self._bar is None:
            self._bar = Progress(transient=True, **self._options)
            self._bar.start()
        if part not in self._tasks:
            self._tasks[part] = self._bar.add_task(f"round {learner.rounds}, {part}", total=steps)
        self._bar.update(self._tasks[part], completed=step)

    def on_round(self, learner: ActiveLearner) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._tasks = None, {}


def step_caller(learner: ActiveLearner, on_step: OnStep | None) -> OnStep | None:
    """One function that calls ``on_step`` and all callbacks; None if there are none."""
    if not learner.callbacks:
        return on_step

    def call(part: str, step: int, steps: int) -> None:
        if on_step is not None:
            on_step(part, step, steps)
        for callback in learner.callbacks:
            callback.on_step(learner, part, step, steps)

    return call
