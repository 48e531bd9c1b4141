"""Limits on connections: their number, and the time for the header of a request."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds within which the header of a request has to arrive.
HEAD_SECONDS = 10.0
#: Maximum number of connections at a time; others are told to try later. It is lower if the process
#: may not open that many files.
MOST_CONNECTIONS = 2000
#: Number of files that the server has open besides its connections.
_OTHER_FILES = 200


def most_connections() -> int:
    """The number of connections that this process can have; raises its limit of open files."""
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
    """HTTP/1.1 with a time limit for the header of each request; uvicorn itself has none."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the header is complete; start it when the next one starts."""
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
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
        """Whether the header of a request has arrived, and its reply is not complete."""
        return self.cycle is not None and not self.cycle.response_complete
