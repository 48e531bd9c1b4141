"""A project with a few images, and a client of its server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from spinal.label.store.project import Project, open_project
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from tests.label.files import make_images

CLASSES = ("red", "green", "blue")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    make_images(tmp_path / "images", 40)
    project = open_project(tmp_path / "images", classes=CLASSES, encoder="pixels", budget=30)
    project.scan()
    yield project
    project.close()


Connect = Callable[..., TestClient]


@pytest.fixture
def connect(project: Project) -> Connect:
    """A client of a server at some address, with or without a token."""

    def make(host: str = "127.0.0.1", token: str | None = None, name: str = "") -> TestClient:
        server = Server(project, Rules(host, 8421, token))
        return TestClient(server.app, base_url=f"http://{name or host}:8421")

    return make


@pytest.fixture
def client(connect: Connect) -> TestClient:
    return connect()
