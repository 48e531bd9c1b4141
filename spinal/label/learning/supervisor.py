"""Supervision of the worker process: starts it, reads its status, restarts it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

#: Seconds before a failed worker is restarted: longer after each failure, until one succeeds.
PAUSES = (1, 2, 5, 10, 30, 60)


class Supervisor:
    """Runs ``python -m spinal.label.learning.worker HOME`` as long as the server runs.

    The worker reports its status in lines of JSON on its standard output. A line on its standard
    input announces new answers. The end of its standard input means that the server has ended, and
    that the worker should end too.

    Args:
        home: the project folder.
        command: a command to run instead of the worker, for tests.

    Attributes:
        status: the last line of the worker: ``state``, and ``done`` and ``total`` or a ``message``.
    """

    def __init__(self, home: Path, command: Sequence[str] | None = None) -> None:
        self.log = home / "worker.log"
        self.command = command or [sys.executable, "-m", "spinal.label.learning.worker", str(home)]
        self.status: dict[str, Any] = {"state": "starting"}
        self.restarts = 0
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True, name="supervisor")

    def start(self) -> None:
        """Start the worker, and start it again whenever it fails."""
        self._thread.start()

    def wake(self) -> None:
        """Tell the worker to look for new answers."""
        worker = self._worker
        if worker is not None and worker.stdin is not None:
            with suppress(OSError, ValueError):  # it has just ended, and will be started again
                worker.stdin.write(b"\n")

    def stop(self, patience: float = 5.0) -> None:
        """End the worker; kill it if it does not end within ``patience`` seconds."""
        self._stopping.set()
        worker = self._worker
        if worker is not None and worker.stdin is not None:
            try:
                worker.stdin.close()
                worker.wait(patience)
            except (OSError, subprocess.TimeoutExpired):
                worker.kill()
        if self._thread.is_alive():
            self._thread.join(patience)

    def _supervise(self) -> None:
        """Run the worker, and restart it after any error, until the server stops."""
        while not self._stopping.is_set():
            try:
                why = self._last_words(self._run_once())
            except Exception as error:  # no folder for the log, no memory for a process, ...
                why = _describe(error)
            if self._stopping.is_set():
                break
            pause = PAUSES[min(self.restarts, len(PAUSES) - 1)]
            self.restarts += 1
            self.status = {"state": "crashed", "message": f"{why}; starting again in {pause} s"}
            self._stopping.wait(pause)

    def _run_once(self) -> int:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        with (
            self.log.open("w") as log,
            # Unbuffered: no data may be left to write into the pipe of a dead process.
            subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env=environment, start_new_session=True,  # Ctrl-C should only reach the server
            ) as worker,
        ):  # fmt: skip
            self._worker = worker
            assert worker.stdout is not None
            for line in io.BufferedReader(cast("io.FileIO", worker.stdout)):
                self._listen(line)
            return worker.wait()

    def _listen(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return  # printed by a library
        if isinstance(said, dict) and "state" in said:
            self.status = said
            if said["state"] in ("fitted", "idle"):
                self.restarts = 0

    def _last_words(self, code: int) -> str:
        """The last line in the worker's log, or how the worker ended."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:300]
        return f"killed by signal {-code}" if code < 0 else f"ended with code {code}"


def _describe(error: Exception) -> str:
    """Why the worker could not be run, for the user."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} no longer exists"
    return str(error) or type(error).__name__
