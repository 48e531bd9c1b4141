"""Shared code of the engines: an attempt at a run, and a limit on attempts."""

from __future__ import annotations

import contextlib
import traceback
from pathlib import Path

from spinal.data import Dataset
from spinal.errors import SpinalError
from spinal.experiments.runs import MakeCallbacks, Run, execute

#: A run that has ended, and its error, if it failed.
Ended = tuple[Run, str | None]

#: Seconds to wait for another process to release a run, which may just be stopping.
WAIT = 10.0
#: Number of crashes in the same round after which a run is abandoned.
MAX_CRASHES = 3


def attempt(
    run: Run, dataset: Dataset, callbacks: MakeCallbacks | None, wait: float = WAIT
) -> str | None:
    """Execute a run; return its error as text, which can be sent between processes, or None.

    The traceback of an unexpected error is written to ``error.txt``, in the folder of the run.
    """
    error_file = run.folder / "error.txt"
    try:
        execute(run, dataset=dataset, wait=wait, callbacks=callbacks)
    except SpinalError as error:
        return str(error)
    except Exception as error:
        with contextlib.suppress(OSError):  # the disk may be full
            error_file.write_text(traceback.format_exc(), encoding="utf-8")
        return f"{type(error).__name__}: {error} (see {error_file})"
    error_file.unlink(missing_ok=True)
    return None


class CrashCounter:
    """Counts the workers that died, by run and round.

    A run whose worker died continues in another worker. If workers die repeatedly in the same
    round, the run itself is the cause.
    """

    def __init__(self) -> None:
        self._last: dict[Path, tuple[int, int]] = {}  # by folder: the round, and crashes in it

    def count(self, run: Run) -> str | None:
        """Count a crash of this run's worker; None if the run may continue, otherwise the error."""
        number = len(run.rounds())
        last_round, crashes = self._last.get(run.folder, (number, 0))
        crashes = crashes + 1 if last_round == number else 1
        self._last[run.folder] = number, crashes
        if crashes < MAX_CRASHES:
            return None
        return f"workers died {crashes} times in round {number}: killed, or out of memory?"
