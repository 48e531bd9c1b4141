"""The server of the page, together with its worker."""

from __future__ import annotations

import socket
import threading
import time
import webbrowser

import uvicorn
from rich.console import Console

from spinal.errors import SpinalError
from spinal.label.learning.supervisor import Supervisor
from spinal.label.store.project import Project
from spinal.label.web.connections import LimitedProtocol, most_connections
from spinal.label.web.security import Rules, is_loopback, keep_token
from spinal.label.web.server import Server


class Page:
    """A server and its worker, which run inside the ``with`` block.

    Args:
        project: the project.
        host: address to listen on.
        port: port to listen on; 0 for any.
    """

    def __init__(self, project: Project, host: str, port: int) -> None:
        self.project, self.host, self.port = project, host, port

    def __enter__(self) -> Page:
        self._socket = _listen(self.host, self.port)
        self.port = self._socket.getsockname()[1]
        token = None if is_loopback(self.host) else keep_token(self.project.home / "token")
        self.rules = Rules(self.host, self.port, token)
        self.supervisor = Supervisor(self.project.home)
        self._pages = Server(self.project, self.rules, self.supervisor)
        config = uvicorn.Config(
            self._pages.app, log_level="warning", access_log=False, server_header=False,
            lifespan="off", timeout_graceful_shutdown=2, http=LimitedProtocol, ws="none",
            limit_concurrency=most_connections(),
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self.supervisor.start()
        self._thread.start()
        while not self.server.started:
            if not self._thread.is_alive():
                raise SpinalError("the server could not be started")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self._thread.join(5)
        self.supervisor.stop()
        self._pages.close()
        self._socket.close()

    @property
    def link(self) -> str:
        """The address of the page, with the token if one is needed."""
        name = self.host
        if name in ("0.0.0.0", "::"):
            name = socket.gethostname()
        at = f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"
        return at if self.rules.token is None else f"{at}?token={self.rules.token}"

    def announce(self, console: Console, browser: bool) -> None:
        """Print the address of the page, and open it in a browser if ``browser``."""
        if self.rules.token is not None:
            console.print(
                "[bold yellow]warning:[/] others on the network can reach this page. Anybody with "
                "the link can see and label the images; the connection is not encrypted."
            )
        console.print(f"label at [bold]{self.link}[/]  (Ctrl-C to stop; no answer is lost)")
        if browser:
            webbrowser.open(self.link)

    def wait(self) -> None:
        """Wait until Ctrl-C is pressed."""
        try:
            while self._thread.is_alive():
                self._thread.join(1)
        except KeyboardInterrupt:
            pass


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; an error that says what to do if that fails."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With an explicit protocol, asyncio sets TCP_NODELAY. Otherwise the second part of a reply
        # would wait 40 ms for the other side to acknowledge the first.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        raise SpinalError(
            f"cannot listen on {host}, port {port} ({error.strerror}): choose another --port"
        ) from error
    return listening
