"""Connections that send no whole request are closed after a few seconds."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Within which the head of a request has to arrive.
HEAD_SECONDS = 10.0
#: Connections at a time; further ones are told to come later. Fewer, where a process may not open
#: as many files.
MOST_CONNECTIONS = 2000
#: Files that the server has open beside its connections.
_OTHER_FILES = 200


def most_connections() -> int:
    """How many connections this process can have, after raising its limit of open files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_CONNECTIONS
    unlimited = resource.RLIM_INFINITY
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + _OTHER_FILES
    if soft != unlimited and soft < wanted:
        soft = wanted if hard == unlimited else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    enough = soft == unlimited or soft >= wanted
    return MOST_CONNECTIONS if enough else max(soft - _OTHER_FILES, soft // 2)


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for the head of each request; uvicorn itself has none."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock for the first request."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when the head is complete; start it when a further one has begun."""
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        super().connection_lost(exc)
        self._stop()

    def _set_deadline(self) -> None:
        if self._is_served() or self.transport.is_closing():
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_served():
            self.transport.close()

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_served(self) -> bool:
        """Whether the head of a request is here, and its reply is not complete."""
        return self.cycle is not None and not self.cycle.response_complete
