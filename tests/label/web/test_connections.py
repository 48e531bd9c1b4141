"""Requests that never become whole."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator

import pytest

from spinal.label.learning import supervisor
from spinal.label.store.project import Project
from spinal.label.web import connections, requests
from spinal.label.web.serving import Page

HEAD = b"POST /api/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def page(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.5)
    idle = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    first = supervisor.Supervisor.__init__
    monkeypatch.setattr(
        supervisor.Supervisor, "__init__", lambda self, home: first(self, home, idle)
    )
    with Page(project, "127.0.0.1", 0) as page:
        yield page


def send(page: Page, *parts: bytes, pause: float = 0.0) -> bytes:
    """What the server replies until it closes the connection."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        reply = b""
        while received := connection.recv(4096):
            reply += received
        return reply


def test_half_a_head_is_not_waited_for(page: Page) -> None:
    assert send(page) == b""
    assert send(page, HEAD) == b""
    assert send(page, *([b"GET / HTTP/1.1\r\n"] + [b"X: y\r\n"] * 3), pause=0.1) == b""


def test_half_a_head_after_a_whole_request_is_not_waited_for(page: Page) -> None:
    whole = b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = send(page, whole, whole, b"GET / HT", pause=0.2)
    assert reply.count(b"200 OK") == 2


def test_half_a_body_is_not_waited_for(page: Page) -> None:
    reply = send(page, HEAD + b"Connection: close\r\nContent-Length: 99\r\n\r\n{")
    assert b"408" in reply.splitlines()[0]
    assert b"did not arrive" in reply


def test_a_client_that_leaves_in_the_middle_is_no_error(
    page: Page, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", page.port)) as connection:
        connection.sendall(HEAD + b"Content-Length: 99\r\n\r\n{")
        time.sleep(0.2)
    time.sleep(0.3)
    assert send(page, HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    assert "Traceback" not in capfd.readouterr().err


def test_connections_fit_into_the_limit_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    raised = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    unlimited = resource.RLIM_INFINITY
    for limits, most in (
        ((1024, unlimited), 2000), ((1024, 4096), 2000), ((1024, 1200), 1000), ((256, 300), 150),
        ((20_000, 20_000), 2000), ((unlimited, unlimited), 2000),
    ):  # fmt: skip
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        assert connections.most_connections() == most
    assert raised == [(2200, unlimited), (2200, 4096), (1200, 1200), (300, 300)]
