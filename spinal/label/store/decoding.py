"""Decoding of untrusted images in processes of their own, with limits of memory and time.

A small file can hold an image that takes gigabytes or minutes to decode. Here it can only take one
of a few processes down with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from queue import LifoQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError

#: Of one process; an image of 100 megapixels without transparency needs two thirds of it.
MAX_MEMORY = 5 << 28
#: To decode an image; the largest photographs take three or four.
MAX_SECONDS = 20.0


class Decoders:
    """A few processes, each of which decodes one image at a time. They start when needed.

    Args:
        n: number of processes. If all of them are busy, calls wait.
        max_seconds: a process that takes longer is killed.
        max_memory: bytes that a process may use.
    """

    def __init__(
        self, n: int, max_seconds: float = MAX_SECONDS, max_memory: int = MAX_MEMORY
    ) -> None:
        self._free: LifoQueue[_Decoder] = LifoQueue()  # the last one used is already running
        self._all = [_Decoder(max_seconds, max_memory) for _ in range(n)]
        for decoder in self._all:
            self._free.put(decoder)

    def to_jpeg(self, content: bytes, side: int, quality: int) -> bytes:
        """A JPEG of an image file, upright, with no side longer than ``side``.

        Raises:
            DataError: if the file is damaged, or takes too much memory or time.
        """
        return self._decode(content, {"make": "jpeg", "side": side, "quality": quality})

    def to_square(self, content: bytes, side: int, resample: int) -> NDArray[np.uint8]:
        """The pixels of an image file, upright, RGB, stretched to a square: ``[side, side, 3]``.

        Raises:
            DataError: if the file is damaged, or takes too much memory or time.
        """
        pixels = self._decode(content, {"make": "square", "side": side, "resample": resample})
        return np.frombuffer(pixels, np.uint8).reshape(side, side, 3)

    def close(self) -> None:
        """End the processes."""
        for decoder in self._all:
            decoder.end()

    def _decode(self, content: bytes, request: dict[str, Any]) -> bytes:
        decoder = self._free.get()
        try:
            return decoder.decode(content, request)
        finally:
            self._free.put(decoder)


class _Decoder:
    """One process; see `spinal.label.store.decoder`. Used by one thread at a time."""

    def __init__(self, max_seconds: float, max_memory: int) -> None:
        self._seconds, self._memory = max_seconds, max_memory
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, content: bytes, request: dict[str, Any]) -> bytes:
        if self._process is not None and self._process.poll() is not None:
            self.end()  # killed while it had nothing to do
        process = self._process = self._process or self._start()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._seconds, stop)
        timer.start()
        try:
            result = _exchange(process, content, request)
        except DataError:
            raise
        except (OSError, ValueError, EOFError) as error:
            self.end()
            if late.is_set():
                raise DataError(f"takes more than {self._seconds:g} s to be decoded") from error
            raise DataError("crashes the program that decodes it") from error
        finally:
            timer.cancel()
        if late.is_set():  # killed just after it had replied
            self.end()
        return result

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                pass  # closes the pipes, and waits for the end

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "spinal.label.store.decoder", str(self._memory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the server
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
