"""The numbers of the dashboard, counted once more by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from starlette.testclient import TestClient

from spinal.label.store.project import Project
from spinal.label.store.store import Answer
from spinal.label.web.dashboard import calibration, share
from tests.label.conftest import CLASSES
from tests.label.web.test_server import answer, ask, believe


def test_without_a_model(client: TestClient) -> None:
    board = client.get("/api/dashboard").json()
    assert board["matrix"] == [[0] * 3] * 3
    assert board["calibration"] == []
    assert board["people"] == []
    assert board["learned_from"] is None
    assert board["classes"][0] == {
        "name": "red", "precision": None, "recall": None, "audited": 0, "audited_right": 0,
    }  # fmt: skip


def test_the_matrix_counts_what_its_cells_open(client: TestClient, project: Project) -> None:
    believe(project)  # image i is of class i mod 3; the first ten were checked
    free = [row["id"] for row in project.store.images() if not row["reserved"]]
    client.get("/api/browse")  # the predictions are read
    for image in free[:12]:
        label = CLASSES[image % 3] if image % 4 else CLASSES[(image + 1) % 3]
        answer(client, image, label, f"t{image}")
    board = client.get("/api/dashboard").json()
    for i, label in enumerate(CLASSES):
        for j, predicted in enumerate(CLASSES):
            query = {"label": label, "predicted": predicted}
            opened = client.get("/api/browse", params=query).json()["total"]
            assert board["matrix"][i][j] == opened
    matrix = np.array(board["matrix"])
    assert matrix.sum() == 12  # later labels than the model's are predictions, too
    recall = board["classes"][1]["recall"]
    assert recall["value"] == matrix[1, 1] / matrix[1].sum()
    assert board["classes"][1]["precision"]["value"] == matrix[1, 1] / matrix[:, 1].sum()


def test_labels_that_the_model_was_told_are_no_predictions(
    client: TestClient, project: Project
) -> None:
    free = [row["id"] for row in project.store.images() if not row["reserved"]]
    for image in free[-4:]:
        answer(client, image, CLASSES[image % 3], f"t{image}")
    believe(project)  # fitted after these answers, which are not among the checked ones
    assert np.sum(client.get("/api/dashboard").json()["matrix"]) == 0


def test_the_audit_by_class(client: TestClient, project: Project) -> None:
    known = believe(project)
    reserved = [row["id"] for row in project.store.images() if row["reserved"]][:5]
    for image in reserved:
        label = CLASSES[image % 3] if image != reserved[0] else CLASSES[(image + 1) % 3]
        answer(client, image, label, f"t{image}")
    rows = np.searchsorted(known.images, reserved)
    known = replace(
        known, audited=np.array(reserved), audited_probs=known.probs[rows], learned_from="pool"
    )
    known.save(project.beliefs_file)
    board = client.get("/api/dashboard").json()
    assert sum(row["audited"] for row in board["classes"]) == 5
    assert sum(row["audited_right"] for row in board["classes"]) == 4
    assert board["learned_from"] == "pool"
    assert board["calibration"][0]["n"] == 5
    assert board["calibration"][0]["value"] == 0.8


@pytest.mark.parametrize(("part", "whole"), [(0, 4), (3, 7), (20, 20), (150, 1000)])
def test_the_interval_is_wilsons(part: int, whole: int) -> None:
    expected = binomtest(part, whole).proportion_ci(method="wilson")
    found = share(part, whole)
    assert found is not None
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_calibration_by_groups() -> None:
    sure = np.linspace(0.5, 0.95, 10)
    groups = calibration(sure, np.array([True, False] * 5))
    assert [group["n"] for group in groups] == [5, 5]
    assert groups[0]["confidence"] == pytest.approx(sure[:5].mean())
    assert [group["value"] for group in groups] == [3 / 5, 2 / 5]
    assert calibration(sure[:4], np.ones(4, bool)) == []


def test_who_did_what(client: TestClient, project: Project) -> None:
    first, second, third = [question["image"] for question in ask(client)]
    answer(client, first, "red", "t1")
    answer(client, second, None, "t2")
    answer(client, third, "red", "t3")
    client.post("/api/undo", json={"client": "tab-1", "person": "ada", "tokens": ["t3"]})
    project.store.answer([Answer("b", first, "blue", "mistake", True)], "bob")
    times = ("2026-01-01T12:00:00.000+00:00", "2026-01-01T12:00:04.000+00:00",
             "2026-01-01T12:01:04.500+00:00")  # fmt: skip
    for token, at in zip(("t1", "t2", "t3"), times, strict=True):
        with project.store._database.transaction() as db:
            db.execute("UPDATE answers SET at = ? WHERE token = ?", (at, token))
    board = client.get("/api/dashboard").json()
    ada, bob = board["people"]
    assert (ada["answers"], ada["skipped"], ada["undone"], ada["corrections"]) == (2, 1, 1, 0)
    assert ada["seconds"] == pytest.approx(4, abs=0.01)  # the third came after a break
    assert (bob["answers"], bob["corrections"], bob["seconds"]) == (1, 1, None)
    assert board["seconds"] == pytest.approx(4, abs=0.01)
