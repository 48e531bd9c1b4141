"""A real browser, and servers for it to talk to."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from spinal.label.store.project import Project
from spinal.label.web.security import Rules
from spinal.label.web.server import Server

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium: make test-all installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="make test-all installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a page in a browser of its own; what goes wrong in it fails the test."""
    contexts, errors = [], []

    def make(link: str, width: int = 1280, height: int = 800, **options: Any) -> Any:
        viewport = {"width": width, "height": height}
        context = chromium.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(link)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    yield make
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def serve() -> Iterator[Callable[[Project], str]]:
    """Serve a project without a model behind it; the link to its page."""
    servers = []

    def start(project: Project) -> str:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        app = Server(project, Rules("127.0.0.1", port, None)).app
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        servers.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{port}/"

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(5)


class Command:
    """``spinal label``, as a user starts it, which can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.arguments = ["label", str(folder), *options]
        self.start()

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spinal", *self.arguments, "--port", str(self.port),
             "--no-browser"],
            stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if "label at" in line:
                return
        raise AssertionError(f"it did not start: {lines}")

    def kill(self) -> None:
        """As the kernel would, without a chance to tidy up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def command() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(*arguments: Any) -> Command:
        started.append(Command(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.send_signal(signal.SIGINT)
        try:
            each.process.wait(15)
        except subprocess.TimeoutExpired:
            each.kill()
