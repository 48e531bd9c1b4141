"""Runs on this machine, with joblib."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool

import joblib

from spinal.data import Dataset
from spinal.experiments.engines.attempts import CrashCounter, Ended, attempt
from spinal.experiments.runs import MakeCallbacks, Run


class JoblibEngine:
    """Worker processes, one thread each; with one worker, this process itself.

    Attributes:
        workers: number of parallel runs.
    """

    def __init__(self, workers: int = 0) -> None:
        self.workers = workers or os.cpu_count() or 1

    def __enter__(self) -> JoblibEngine:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def execute(
        self,
        runs: Sequence[Run],
        datasets: Mapping[str, Dataset],
        callbacks: MakeCallbacks | None = None,
    ) -> Iterator[Ended]:
        """Execute runs in order; each is yielded when it has ended.

        Arrays of a megabyte or more are passed to the workers as memory-mapped files.

        Args:
            runs: the runs to execute.
            datasets: the datasets of their protocols, by `Protocol.data_key`.
            callbacks: makes the callbacks of a run.
        """
        left, crashes, least = dict(enumerate(runs)), CrashCounter(), 1
        while left:
            processes = max(least, min(self.workers, len(left)))
            pool = joblib.Parallel(processes, batch_size=1, return_as="generator_unordered")
            tasks = [
                joblib.delayed(_attempt)(
                    i, run, datasets[run.protocol.data_key], callbacks, os.getpid()
                )
                for i, run in left.items()
            ]
            try:
                for i, message in pool(tasks):
                    yield left.pop(i), message
            except BrokenProcessPool:
                # A worker died, and joblib has stopped the others. The first runs were running.
                least = 2  # not in this process, which must not die
                for i in list(left)[: self.workers]:
                    message = crashes.count(left[i])
                    if message is not None:
                        yield left.pop(i), message


def _attempt(
    i: int, run: Run, dataset: Dataset, callbacks: MakeCallbacks | None, parent: int
) -> tuple[int, str | None]:
    if os.getpid() != parent:
        leave_with(parent)
    return i, attempt(run, dataset, callbacks)


@functools.cache
def leave_with(parent: int) -> None:
    """End this worker when the process that started it is gone.

    Otherwise, the workers of a killed grid would keep running and hold the locks of their runs.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
