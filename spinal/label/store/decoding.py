"""Decoding of untrusted images in separate processes, with limits on memory and time.

A small file can hold an image that takes gigabytes or minutes to decode. Here it can only crash
one of a few processes.
"""

from __future__ import annotations

import sys
from queue import LifoQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError
from spinal.label.store.process import EndedError, LateError, ReplyingProcess

#: Bytes for one process; an image of 100 megapixels without transparency needs two thirds of it.
MAX_MEMORY = 5 << 28
#: Seconds to decode an image; the largest photographs take three or four.
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
        command = [sys.executable, "-m", "spinal.label.store.decoder", str(max_memory)]
        self._free: LifoQueue[ReplyingProcess] = LifoQueue()  # the last one used is already running
        self._all = [ReplyingProcess(command, max_seconds) for _ in range(n)]
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
            return decoder.ask(content, request)
        except LateError as error:
            raise DataError(f"takes more than {decoder.max_seconds:g} s to be decoded") from error
        except EndedError as error:
            raise DataError("crashes the program that decodes it") from error
        finally:
            self._free.put(decoder)
