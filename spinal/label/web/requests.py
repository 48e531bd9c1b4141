"""Checks of what clients send, and error replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from spinal.errors import LabelError
from spinal.label.store.database import StoreError
from spinal.label.store.store import Answer
from spinal.label.web.security import RefusedError

#: Seconds within which the body of a request has to arrive.
BODY_SECONDS = 10.0
#: Maximum number of questions that a client may hold, and of tiles in a request.
MOST_QUESTIONS, MOST_TILES = 20, 200


def posted(
    handle: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that takes a JSON object; the work is done in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await asyncio.wait_for(request.body(), BODY_SECONDS))
        except (ValueError, RecursionError):
            body = None
        except asyncio.TimeoutError:
            raise RefusedError(408, f"did not arrive within {BODY_SECONDS:g} s") from None
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        if not isinstance(body, dict):
            raise RefusedError(400, "send a JSON object")
        return JSONResponse(await run_in_threadpool(handle, body))

    return endpoint


def explain(_: Request, error: Exception) -> Response:
    """A `SpinalError` as a JSON reply."""
    status = 503 if isinstance(error, StoreError) else 400
    if isinstance(error, RefusedError):
        status = error.status
    return JSONResponse({"error": str(error)}, status)


def read_answer(body: Any) -> Answer:
    """Read an answer; LabelError if it is invalid. Several classes of an image are a list."""
    if not isinstance(body, dict):
        raise LabelError("an answer is a JSON object")
    image, label = body.get("image"), body.get("label")
    if isinstance(label, list) and all(isinstance(name, str) for name in label):
        label = tuple(label)
    if not isinstance(image, int) or not (label is None or isinstance(label, str | tuple)):
        raise LabelError("an answer has the number of an image, and a class or null")
    for name in (label,) if isinstance(label, str) else label or ():
        if not name.isprintable():  # and so not the name of a class; SQLite refuses some of these
            raise LabelError(f"there is no class {name!r}")
    reason = body.get("reason", "unasked")
    if reason not in ("unasked", "guess", "mistake", "outlier", "disagreement", "browse"):
        raise LabelError(f"there is no reason {reason!r}")
    # In these views, an answer settles the label; elsewhere it is one more opinion.
    decides = reason in ("disagreement", "mistake", "browse")
    return Answer(read_text(body, "token"), image, label, reason, decides)


def read_text(body: dict[str, Any], name: str) -> str:
    """Read a short text; LabelError if it is missing, too long, or not printable."""
    value = body.get(name)
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= 100 or not value.isprintable():
        raise LabelError(f"{name}: give a text of 1 to 100 characters")
    return value.strip()


def read_number(body: dict[str, Any]) -> int:
    """Read the number of questions wanted; LabelError if too many, or if the client has no name."""
    n = body.get("n", 0)
    if not isinstance(n, int) or not 0 <= n <= MOST_QUESTIONS:
        raise LabelError(f"ask for 0 to {MOST_QUESTIONS} questions")
    read_text(body, "client")
    return n


def read_range(request: Request) -> tuple[int, int]:
    """Read the position of the first tile, and the number of tiles."""
    values = [request.query_params.get(name, "0") for name in ("start", "n")]
    if not all(value.isdecimal() and len(value) < 10 for value in values):
        raise RefusedError(400, "start and n are integers")
    return int(values[0]), min(int(values[1]) or 60, MOST_TILES)
