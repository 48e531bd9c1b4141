"""Downloads: what they hold, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from spinal.label.store.project import Project
from spinal.label.web import exporting
from tests.label.web.test_server import answer


@pytest.fixture
def labels(client: TestClient, project: Project) -> dict[str, str]:
    """Three labels, by path."""
    rows = [row for row in project.store.images() if not row["reserved"]][:3]
    for row, label in zip(rows, ("red", "green", "red"), strict=True):
        answer(client, row["id"], label, f"t{row['id']}", reason="browse")
    return {row["path"]: label for row, label in zip(rows, ("red", "green", "red"), strict=True)}


def download(client: TestClient, to: str) -> tuple[str, bytes]:
    made = client.post("/api/export", json={"to": to})
    assert made.status_code == 200, made.text
    reply = client.get(made.json()["at"])
    assert reply.headers["content-disposition"].startswith("attachment")
    assert len(reply.content) == made.json()["bytes"]
    return made.json()["name"], reply.content


@pytest.mark.long
def test_a_table_and_folders(client: TestClient, project: Project, labels: dict[str, str]) -> None:
    name, table = download(client, "csv")
    rows = csv.DictReader(io.StringIO(table.decode()))
    assert name == "labels.csv"
    assert {row["path"]: row["label"] for row in rows} == labels
    name, folders = download(client, "imagefolder")
    assert name == "labelled.zip"
    with zipfile.ZipFile(io.BytesIO(folders)) as archive:
        files = {entry for entry in archive.namelist() if not entry.endswith("/")}
        assert files == {f"labelled/{label}/{path}" for path, label in labels.items()}
        assert "labelled/blue/" in archive.namelist()  # a class without an example is one, too
        path, label = next(iter(labels.items()))
        assert archive.read(f"labelled/{label}/{path}") == (project.folder / path).read_bytes()


@pytest.mark.usefixtures("labels")
def test_few_files_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object, to: str, target: Path, predictions: bool) -> str:
        target.write_text(f"{to} {predictions}")
        return "old"

    monkeypatch.setattr(exporting.Exporter, "_run", run)
    made = [client.post("/api/export", json={"to": "coco"}).json() for _ in range(6)]
    assert [client.get(each["at"]).status_code for each in made] == [404, 404, 200, 200, 200, 200]
    assert client.get(made[-1]["at"]).text == "coco False"
    assert made[-1]["warning"] == "old"


def test_what_cannot_be_made_is_said(client: TestClient) -> None:
    assert "no labels yet" in client.post("/api/export", json={"to": "csv"}).json()["error"]


@pytest.mark.parametrize(
    "body", [{}, {"to": "../x"}, {"to": ["csv"]}, {"to": "csv", "predictions": 1}]
)
def test_odd_requests_are_refused(client: TestClient, body: dict) -> None:
    reply = client.post("/api/export", json=body)
    assert reply.status_code == 400
    assert "export to one of" in reply.json()["error"]


@pytest.mark.parametrize("key", ["x", "..%2f..%2fproject.json", "%2e%2e"])
def test_other_files_are_not_served(client: TestClient, key: str) -> None:
    assert client.get(f"/api/export/{key}").status_code == 404


def test_one_at_a_time(client: TestClient, project: Project) -> None:
    exporter = exporting.Exporter(project)
    exporter._busy.acquire()
    with pytest.raises(exporting.RefusedError, match="another file"):
        exporter.make({"to": "csv"})
    assert json.loads(client.get("/api/state").text)  # nothing else waits for it
