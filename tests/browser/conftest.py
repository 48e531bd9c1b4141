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

import numpy as np
import pytest
import uvicorn

from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.likeness import Likeness
from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from tests.browser.pictures import CLASSES, make_pictures

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


SHOTS = os.environ.get("SPINAL_SCREENSHOTS")
#: Whether all images that are in sight have been drawn.
SEEN = """() => [...document.images].every((image) =>
    image.offsetParent === null || image.getBoundingClientRect().top > innerHeight
    || (image.complete && image.naturalWidth))"""


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


def make_project(folder: Path) -> Project:
    """A hundred pictures, forty labels of which some are wrong, and a good model's beliefs."""
    truth = make_pictures(folder, 100, size=160)
    project = open_project(folder, classes=CLASSES, encoder="pixels", budget=80)
    project.scan()
    store, rng = project.store, np.random.default_rng(0)
    rows = store.images()
    number = {name: i for i, name in enumerate(CLASSES)}
    images = np.array([row["id"] for row in rows])
    classes = np.array([number[truth[row["path"]]] for row in rows])
    probs = rng.dirichlet(np.full(4, 0.3), len(rows)) * 0.4
    probs[np.arange(len(rows)), classes] += 0.6
    for i, row in enumerate(rows[:40]):
        label = truth[row["path"]] if i % 9 else CLASSES[(classes[i] + 1) % 4]
        store.answer([Answer(f"t{i}", row["id"], label)], "ada")
    for row in [row for row in rows[:40] if not row["reserved"]][1:5]:
        other = CLASSES[(number[truth[row["path"]]] + 2) % 4]
        store.answer([Answer(f"d{row['id']}", row["id"], other)], "grace")
    audited = np.array([row["id"] for row in store.labelled() if row["reserved"]])
    Beliefs(
        4, CLASSES, images, probs.astype(np.float32),
        rng.normal(0, 9, len(rows)).astype(np.float32),
        images[:40], probs[:40].astype(np.float32), {"spn": 0.7, "logistic": 0.3},
        "another 50 labels would change about 4.1% of the predictions (2.0% to 8.3%)",
        audited, probs[audited - images[0]].astype(np.float32), "pool",
    ).save(project.beliefs_file)  # fmt: skip
    for i, (n, right) in enumerate([(2, 1), (4, 3), (6, 5), (8, 7)], 1):
        low, high = right / n - 0.2, min(1, right / n + 0.12)
        store.add_round(i, 8 * i, 2.5)
        store.add_audit(i, n, right, (right / n, low, high))
    queue = [row["id"] for row in rows[40:] if not row["reserved"]]
    store.questions.hand_over(4, [(image, "uncertain") for image in queue])
    file = project.features_folder / "drawn" / "vectors.f32"
    file.parent.mkdir(parents=True)
    np.eye(4, dtype=np.float32)[classes].tofile(file)
    Likeness(images, np.arange(len(images)), 4, file).save(project.likeness_file)
    return project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = make_project(tmp_path / "landscapes")
    yield project
    project.close()


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
