"""Label Studio, a real one: it asks what spinal would ask."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from spinal.commands.app import app
from spinal.encoders import load_encoder
from spinal.label.exports.label_studio import choice, labelling_configuration
from spinal.label.studio.api import StudioAPI, StudioError
from spinal.label.studio.studio import SAMPLING, Studio
from tests.label.files import make_images
from tests.label.models import CLASSES

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef0123456789abcdef01234567"
IMAGES = 45


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Label Studio on loopback, with a database of its own."""
    program = os.environ.get("SPINAL_LABEL_STUDIO", "")
    if not Path(program).is_file():
        pytest.skip("SPINAL_LABEL_STUDIO names no Label Studio; `make test-all` installs one")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("label-studio")
    environment = os.environ | {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "COLLECT_ANALYTICS": "false",
    }
    environment.pop("PYTHONPATH", None)
    command = [
        program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
        "--username", "ann@example.com", "--password", "not-a-secret",
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            wait_for(address + "/health", server, folder / "log")
            yield address
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + 1200  # a busy machine took more than ten minutes
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"Label Studio did not start: {log.read_text()[-2000:]}")


class Person:
    """Whoever labels in Label Studio, by way of its interface."""

    def __init__(self, api: StudioAPI, images: Path) -> None:
        self.api = api
        self.truth = make_images(images, IMAGES)
        values = {"title": "Colours", "label_config": labelling_configuration(CLASSES)}
        self.project = api.call("POST", "/api/projects/", values)["id"]
        for name in self.truth:
            self.upload(images / name)

    def upload(self, path: Path) -> None:
        """As the page does: Label Studio keeps the file, and gives it only to those who may."""
        head = f'Content-Disposition: form-data; name="file"; filename="{path.name}"'
        body = f"--edge\r\n{head}\r\nContent-Type: image/png\r\n\r\n".encode()
        request = urllib.request.Request(
            f"{self.api.url}/api/projects/{self.project}/import",
            data=body + path.read_bytes() + b"\r\n--edge--\r\n",
            headers={
                "Authorization": f"Token {TOKEN}",
                "Content-Type": "multipart/form-data; boundary=edge",
            },
        )
        urllib.request.urlopen(request, timeout=60).close()

    def label(self, task: dict[str, Any]) -> str:
        """The right answer for a task, by the name of its file."""
        return next(label for name, label in self.truth.items() if name in task["data"]["image"])

    def next(self) -> dict[str, Any]:
        return self.api.call("GET", f"/api/projects/{self.project}/next")

    def answer(self, task: dict[str, Any]) -> None:
        result = {"result": choice(self.label(task))}
        self.api.call("POST", f"/api/tasks/{task['id']}/annotations/", result)

    def predictions(self) -> dict[int, dict[str, Any]]:
        """By task, those of the newest version; there should be no others."""
        version = self.api.project(self.project).version
        found = self.api.call("GET", f"/api/predictions/?project={self.project}")
        assert {each["model_version"] for each in found} == {version}
        return {each["task"]: each for each in found}


def test_label_studio_asks_what_spinal_would_ask(url: str, tmp_path: Path) -> None:
    api = StudioAPI(url, TOKEN)
    person = Person(api, tmp_path / "images")
    said: list[str] = []
    encoder = load_encoder("pixels@4", device="cpu")

    def begin() -> Studio:
        return Studio(
            api, person.project, encoder, tmp_path / "kept", ahead=20, batch=9, say=said.append
        )

    studio = begin()
    assert studio.step()
    assert api.project(person.project).sampling == SAMPLING
    assert len(person.predictions()) == 20
    assert all(each["result"] == [] for each in person.predictions().values())
    asked = []
    for _ in range(9):  # the first questions: typical images, of all classes
        task = person.next()
        asked.append(task["id"])
        person.answer(task)
        assert studio.step() == (len(asked) == 9)
    assert asked == studio.history[0][:9]
    assert {person.label(task) for task in tasks_of(api, person, asked)} == set(CLASSES)

    # Now there is a model, and its order is followed.
    predictions = person.predictions()
    scores = [predictions[task]["score"] for task in studio.history[1]]
    assert scores == sorted(scores)
    assert not set(predictions) & set(asked)
    # The scores are these tasks' certainties, handed out in the order in which they are asked.
    raw = [task["data"]["uncertainty"] for task in tasks_of(api, person, studio.history[1])]
    expected = [(1 - score) * np.log(3) for score in scores]
    assert sorted(raw, reverse=True) == pytest.approx(expected, abs=1e-3)
    for number in studio.history[1][:3]:
        task = person.next()
        assert task["id"] == number
        person.answer(task)
    assert not studio.step()  # 3 new annotations are not enough
    right = [
        predictions[task["id"]]["result"][0]["value"]["choices"] == [person.label(task)]
        for task in tasks_of(api, person, list(predictions))
    ]
    assert np.mean(right) > 0.8
    csv = urllib.request.Request(
        f"{url}/api/projects/{person.project}/export?exportType=CSV",
        headers={"Authorization": f"Token {TOKEN}"},
    )
    with urllib.request.urlopen(csv) as response:
        assert "uncertainty" in response.readline().decode()

    # Another process goes on: with all annotations, and without fetching an image again.
    again = begin()
    fetched: list[str] = []
    api.image = lambda address: fetched.append(address) or b""  # type: ignore[method-assign]
    assert again.step()
    assert said[-1].startswith("round 3: 12 labels")
    assert not fetched
    assert person.next()["id"] == again.history[0][0]


def tasks_of(api: StudioAPI, person: Person, numbers: list[int]) -> list[dict[str, Any]]:
    data = api.tasks(person.project)
    return [{"id": number, "data": data[number]} for number in numbers]


def test_a_personal_access_token(url: str, tmp_path: Path) -> None:
    token = StudioAPI(url, TOKEN).call("POST", "/api/token/")["token"]
    assert token.count(".") == 2
    assert StudioAPI(url, token).call("GET", "/api/projects/")["count"] >= 0
    with pytest.raises(StudioError, match=r"401.*--token"):
        StudioAPI(url, token[:-5] + "wrong").call("GET", "/api/projects/")


def test_what_is_refused(url: str) -> None:
    with pytest.raises(StudioError, match=r"401, Invalid token.*--token"):
        StudioAPI(url, "wrong").project(1)
    with pytest.raises(StudioError, match="404"):
        StudioAPI(url, TOKEN).project(12345)
    text = {
        "title": "Words",
        "label_config": '<View><Text name="t" value="$t"/><Choices name="c" toName="t">'
        '<Choice value="a"/><Choice value="b"/></Choices></View>',
    }
    api = StudioAPI(url, TOKEN)
    project = api.call("POST", "/api/projects/", text)["id"]
    with pytest.raises(StudioError, match="about an <Image>"):
        api.project(project)


def test_the_command(url: str, tmp_path: Path) -> None:
    person = Person(StudioAPI(url, TOKEN), tmp_path / "images")
    command = [
        "label-studio", "--url", url, "--project", str(person.project), "--features", "pixels@4",
        "--ahead", "5", "--folder", str(tmp_path / "kept"), "--once",
    ]  # fmt: skip
    done = CliRunner().invoke(app, command, env={"LABEL_STUDIO_TOKEN": TOKEN})
    assert done.exit_code == 0, done.output
    assert "round 1: 5 tasks that cover the images" in done.output
    assert len(person.predictions()) == 5
