"""A process that replies to requests, and is killed if a reply takes too long.

A request is a line of JSON and some bytes; so is a reply. `spinal.label.store.decoder` is such a
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from spinal.errors import DataError, SpinalError


class LateError(SpinalError):
    """The process took too long, and was killed."""


class EndedError(SpinalError):
    """The process ended before it had replied."""


class ReplyingProcess:
    """A process that is started when needed. Used by one thread at a time.

    Args:
        command: the command that starts it.
        max_seconds: a process that takes longer for a reply is killed.
    """

    def __init__(self, command: Sequence[str], max_seconds: float) -> None:
        self.command, self.max_seconds = list(command), max_seconds
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, content: bytes, request: dict[str, Any]) -> bytes:
        """Send a request, and wait for the reply.

        Raises:
            DataError: if the process refuses the request.
            LateError: if it takes too long.
            EndedError: if the process ends.
        """
        if self._process is not None and self._process.poll() is not None:
            self.end()  # killed while it had nothing to do
        process = self._process = self._process or self._start()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.max_seconds, stop)
        timer.start()
        try:
            result = _exchange(process, content, request)
        except DataError:
            raise
        except (OSError, ValueError, EOFError) as error:
            self.end()
            if late.is_set():
                raise LateError(f"took more than {self.max_seconds:g} s") from error
            raise EndedError("ended without a reply") from error
        finally:
            timer.cancel()
        if late.is_set():  # killed just after it had replied
            self.end()
        return result

    def end(self) -> None:
        """End the process; the next request starts another one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                pass  # closes the pipes, and waits for the end

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C should only reach the server
        )  # fmt: skip


def _exchange(process: subprocess.Popen[bytes], content: bytes, request: dict[str, Any]) -> bytes:
    """Send a request, and wait for the reply; DataError if the image is refused."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request | {"bytes": len(content)}).encode() + b"\n")
    process.stdin.write(content)
    process.stdin.flush()
    reply = json.loads(process.stdout.readline())
    if "error" in reply:
        raise DataError(reply["error"])
    result = process.stdout.read(reply["bytes"])
    if len(result) < reply["bytes"]:
        raise EOFError
    return result
