"""Predictions for an image or text that a user drops on the page."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.errors import DataError, LabelError, SpinalError
from spinal.label.store.process import EndedError, LateError, ReplyingProcess
from spinal.label.web.security import MAX_UPLOAD, UPLOAD, RefusedError
from spinal.label.web.views import Views

#: Seconds for the content to arrive, for a reply, and until the unused process ends.
ARRIVAL, REPLY, IDLE = 30.0, 120.0, 300.0


class Trying:
    """Answers requests to try the model. Files are tried one at a time, and not stored.

    The model and the file are loaded in a separate process; see `spinal.label.exports.trying`. The
    process ends when it has not been used for a while.

    Args:
        views: predictions of the newest model.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        command = [sys.executable, "-m", "spinal.label.exports.trying", str(views.project.home)]
        self._process = ReplyingProcess(command, REPLY)
        self._turn = asyncio.Lock()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.routes = [Route(UPLOAD, self.try_one, methods=["POST"])]

    async def try_one(self, request: Request) -> Response:
        """Class probabilities of one image or text, and the rank of its density."""
        if self._turn.locked():  # before its content is read into memory
            raise RefusedError(429, "another one is being tried: wait a moment")
        async with self._turn:
            try:
                content = await asyncio.wait_for(_read(request), ARRIVAL)
            except asyncio.TimeoutError:
                raise RefusedError(408, f"did not arrive within {ARRIVAL:g} s") from None
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            return JSONResponse(await run_in_threadpool(self._predict, content))

    def _predict(self, content: bytes) -> dict[str, Any]:
        try:
            with self._lock:
                said = json.loads(self._process.ask(content, {}))
        except DataError as error:
            raise LabelError(str(error)) from error
        except (LateError, EndedError) as error:
            raise SpinalError(f"the model could not be tried: it {error}") from error
        finally:
            self._end_later()
        return {**said, "density_rank": self._rank(said.pop("log_density"))}

    def _rank(self, log_density: float) -> float | None:
        """The share of the project's images with a lower density."""
        beliefs = self.views.beliefs
        return None if beliefs is None else float(np.mean(beliefs.log_density < log_density))

    def _end_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(IDLE, self.close)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._process.end()


async def _read(request: Request) -> bytes:
    """The content of a request; an error if it is larger than allowed."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_UPLOAD:
            raise RefusedError(413, f"more than {MAX_UPLOAD:,} bytes")
    return bytes(content)
