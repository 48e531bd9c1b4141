"""The grid of runs: several methods and seeds at once, one thread each."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import joblib

from spinal.errors import SpinalError
from spinal.experiments.progress import Progress
from spinal.experiments.protocol import Protocol
from spinal.experiments.runs import Run, execute
from spinal.methods import METHODS, find_method


def make_runs(
    protocols: Iterable[Protocol],
    methods: Sequence[str],
    acquisitions: Sequence[str],
    seeds: Sequence[int],
    out: Path,
) -> list[Run]:
    """All combinations that make sense, seed by seed, so that comparisons fill up evenly.

    The method ``all`` stands for all of them. Without acquisition functions, each method takes its
    own. A method that has no choice (Random) occurs once.

    Raises:
        SpinalError: for a method or an acquisition function that does not exist.
    """
    runs = []
    if "all" in methods:
        methods = list(METHODS)
    for seed in seeds:
        for protocol in protocols:
            for method in methods:
                found = find_method(method)
                names = list(acquisitions) or [found.acquisition]
                if len(found.choices) == 1:
                    names = [found.acquisition]
                for name in names:
                    if name not in found.choices:
                        raise SpinalError(
                            f"{method} does not go with {name!r}; it goes with "
                            f"{', '.join(found.choices)}"
                        )
                    runs.append(Run(protocol, method, name, seed, out))
    return list({run.folder: run for run in runs}.values())


def run_grid(runs: Sequence[Run], *, workers: int = 0, data_dir: str | Path | None = None) -> None:
    """Execute the runs that are not finished, ``workers`` at a time (0: one for each core).

    A run that fails does not stop the others. What is done is on disk at every moment: the same
    call goes on where this one was stopped.

    Raises:
        SpinalError: at the end, if runs failed.
    """
    left = [run for run in runs if not run.is_finished]
    workers = min(workers or os.cpu_count() or 1, max(len(left), 1))
    with Progress(runs):
        failures = joblib.Parallel(n_jobs=workers, batch_size=1)(
            joblib.delayed(_attempt)(run, data_dir, os.getpid()) for run in left
        )
    failed = [message for message in failures if message]
    if failed:
        raise SpinalError(f"{len(failed)} of {len(left)} runs failed: {'; '.join(failed)}")


def _attempt(run: Run, data_dir: str | Path | None, parent: int) -> str | None:
    """Execute a run; its error as text, so that it survives the way between processes."""
    if os.getpid() != parent:
        _leave_with(parent)
    try:
        execute(run, data_dir)
    except SpinalError as error:
        return str(error)
    return None


@functools.cache
def _leave_with(parent: int) -> None:
    """End this worker when the process that started it is gone.

    A grid that was killed would otherwise leave its workers behind, at work and holding the locks
    of their runs.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
