"""The model, tried on a photograph from elsewhere; and contents that are none."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from spinal.label.exports.trying import Trial
from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project
from spinal.label.web import trying
from spinal.label.web.security import MAX_UPLOAD, Rules
from spinal.label.web.server import Server
from tests.label.files import COLOURS, png_that_claims
from tests.label.models import fit_model, make_project

BYTES = {"Content-Type": "application/octet-stream"}


def picture(colour: tuple[int, int, int]) -> bytes:
    packed = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(packed, "PNG")
    return packed.getvalue()


@pytest.fixture
def fitted(tmp_path: Path) -> Iterator[Project]:
    project, _ = make_project(tmp_path / "images")
    fit_model(project)
    yield project
    project.close()


@pytest.fixture
def server(fitted: Project) -> Iterator[Server]:
    server = Server(fitted, Rules("127.0.0.1", 8421, None))
    yield server
    server.close()


@pytest.fixture
def page(server: Server) -> TestClient:
    return TestClient(server.app, base_url="http://127.0.0.1:8421")


def test_photographs_from_elsewhere(server: Server, page: TestClient, fitted: Project) -> None:
    images = np.array([row["id"] for row in fitted.store.images()])
    probs = np.full((len(images), 3), 1 / 3, np.float32)
    said = {}
    for name, colour in COLOURS.items():
        reply = page.post("/api/try", content=picture(colour), headers=BYTES)
        assert reply.status_code == 200, reply.text
        said = reply.json()
        assert said["classes"][int(np.argmax(said["probs"]))] == name
        assert said["density_rank"] is None  # nothing is known of the other images
    direct = Trial(fitted)(picture(COLOURS["blue"]))
    assert said["probs"] == pytest.approx(direct["probs"], abs=1e-3)
    low = np.linspace(direct["log_density"] - 1, direct["log_density"] + 3, len(images))
    Beliefs(1, tuple(COLOURS), images, probs, low.astype(np.float32)).save(fitted.beliefs_file)
    said = page.post("/api/try", content=picture(COLOURS["blue"]), headers=BYTES).json()
    assert said["density_rank"] == pytest.approx(0.25, abs=0.05)
    refused = page.post("/api/try", content=png_that_claims(60_000, 60_000), headers=BYTES)
    assert refused.status_code == 400
    assert "pixels" in refused.json()["error"]
    assert page.post("/api/try", content=b"no image", headers=BYTES).status_code == 400
    process = server.trying._process._process
    assert process is not None
    assert process.poll() is None  # it has survived all that
    server.close()
    assert process.poll() is not None


def test_without_a_model(client: TestClient) -> None:
    reply = client.post("/api/try", content=picture((9, 9, 9)), headers=BYTES)
    assert reply.status_code == 400
    assert "no model yet" in reply.json()["error"]


def test_large_or_odd_contents_are_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = {**BYTES, "Content-Length": str(MAX_UPLOAD + 1)}
    assert client.post("/api/try", content=b"x", headers=huge).status_code == 413
    for kind in ("application/json", "multipart/form-data", "text/plain", "image/png"):
        odd = {"Content-Type": kind}
        assert client.post("/api/try", content=b"x", headers=odd).status_code == 415
    elsewhere = {**BYTES, "Origin": "http://evil.example"}
    assert client.post("/api/try", content=b"x", headers=elsewhere).status_code == 403
    assert client.get("/api/try").status_code == 405
    # Elsewhere, only JSON is taken, and less of it.
    assert client.post("/api/answers", content=b"x", headers=BYTES).status_code == 415
    monkeypatch.setattr(trying, "MAX_UPLOAD", 10)  # whatever the head of the request says
    assert client.post("/api/try", content=b"x" * 11, headers=BYTES).status_code == 413
