"""Runs on this machine, by joblib."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool

import joblib

from spinal.data import Dataset, dataset_name
from spinal.experiments.engines.attempts import CrashCounter, Ended, attempt
from spinal.experiments.runs import Run


class JoblibEngine:
    """Worker processes, one thread each; with one worker, this process itself.

    Attributes:
        workers: runs at a time.
    """

    def __init__(self, workers: int = 0) -> None:
        self.workers = workers or os.cpu_count() or 1

    def __enter__(self) -> JoblibEngine:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def execute(self, runs: Sequence[Run], datasets: Mapping[str, Dataset]) -> Iterator[Ended]:
        """Execute runs in their order; each is yielded when it has ended.

        Arrays of a megabyte or more reach the workers as files that all of them map into memory.

        Args:
            runs: that are to be executed.
            datasets: by `dataset_name`, those that the protocols of the runs need.
        """
        left, crashes, least = dict(enumerate(runs)), CrashCounter(), 1
        while left:
            processes = max(least, min(self.workers, len(left)))
            pool = joblib.Parallel(processes, batch_size=1, return_as="generator_unordered")
            tasks = [
                joblib.delayed(_attempt)(
                    i, run, datasets[dataset_name(run.protocol.dataset)], os.getpid()
                )
                for i, run in left.items()
            ]
            try:
                for i, message in pool(tasks):
                    yield left.pop(i), message
            except BrokenProcessPool:
                # A worker died; joblib has ended the others, too. The first runs were under way.
                least = 2  # not in this process, which must not die
                for i in list(left)[: self.workers]:
                    message = crashes.count(left[i])
                    if message is not None:
                        yield left.pop(i), message


def _attempt(i: int, run: Run, dataset: Dataset, parent: int) -> tuple[int, str | None]:
    if os.getpid() != parent:
        leave_with(parent)
    return i, attempt(run, dataset)


@functools.cache
def leave_with(parent: int) -> None:
    """End this worker when the process that started it is gone.

    A grid that was killed would otherwise leave its workers behind, at work and holding the locks
    of their runs.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
