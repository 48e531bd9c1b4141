"""Several classes for an image, over HTTP: answers, views, search, dashboard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score
from starlette.testclient import TestClient

from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.sets import confidence
from spinal.label.store.project import Project
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from spinal.label.web.serving import Page
from spinal.label.web.simulate import Person, read_answers
from tests.label.sets import CLASSES, give, make_project
from tests.label.web.test_server import ADA, answer, ask


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Project, dict[str, tuple]]]:
    project, labels = make_project(tmp_path / "images", 40)
    yield project, labels
    project.close()


@pytest.fixture
def client(made: tuple[Project, dict]) -> TestClient:
    server = Server(made[0], Rules("127.0.0.1", 8421, None))
    return TestClient(server.app, base_url="http://127.0.0.1:8421")


def truth_of(project: Project, labels: dict[str, tuple]) -> np.ndarray:
    return np.array([[c in labels[row["path"]] for c in CLASSES] for row in project.store.images()])


def believe(project: Project, labels: dict[str, tuple], n: int = 0) -> Beliefs:
    """A good model's beliefs; the first n images are labelled, and judged without their labels."""
    images = np.array([row["id"] for row in project.store.images()])
    truth, rng = truth_of(project, labels), np.random.default_rng(0)
    probs = np.where(truth, 0.9, 0.1) + rng.uniform(-0.09, 0.09, truth.shape)
    for row in project.store.images()[:n]:
        give(project, row["id"], labels[row["path"]])
    audited = images[: max(n, 1) : 2][:6] if n else images[:0]
    beliefs = Beliefs(
        1, CLASSES, images, probs.astype(np.float32), -images.astype(np.float32),
        images[:n], probs[:n].astype(np.float32), {"spn": 0.6, "logistic": 0.4}, "",
        audited, probs[audited - images[0]].astype(np.float32), "pool", True,
    )  # fmt: skip
    beliefs.save(project.beliefs_file)
    return beliefs


def test_a_set_is_sent_stored_shown_and_taken_back(client: TestClient, made) -> None:
    project, _ = made
    assert client.get("/api/state").json()["multi"] is True
    first, second = [question["image"] for question in ask(client)][:2]
    reply = answer(client, first, ["green", "red"], "t1").json()
    assert reply["progress"]["classes"] == {"red": 1, "green": 1}
    answer(client, second, [], "t2")
    about = client.get(f"/api/about/{first}").json()
    assert about["label"] == ["green", "red"]
    assert about["answers"][0]["label"] == ["green", "red"]
    assert client.get(f"/api/about/{second}").json()["label"] == []
    assert project.store.progress()["labelled"] == 2
    client.post("/api/undo", json={**ADA, "tokens": ["t1"]})
    assert client.get(f"/api/about/{first}").json()["label"] is None


@pytest.mark.parametrize("label", ["red", ["red", "pink"], ["red", 1], [["red"]], {"red": 1}])
def test_what_is_no_set_is_refused(client: TestClient, made, label: Any) -> None:
    first = ask(client)[0]["image"]
    reply = answer(client, first, label, "t1")
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert made[0].store.answers() == []


def test_guesses_are_sets_the_surest_first(client: TestClient, made) -> None:
    project, labels = made
    beliefs = believe(project, labels)
    reply = client.get("/api/guesses?label=red&n=100").json()
    free = [row["id"] for row in project.store.images() if not row["reserved"]]
    wanted = [i for i in free if beliefs.probs[beliefs.row(i), 0] > 0.5]
    assert {tile["image"] for tile in reply["images"]} == set(wanted)
    sure = [tile["confidence"] for tile in reply["images"]]
    assert sure == sorted(sure, reverse=True)
    for tile in reply["images"]:
        row = beliefs.row(tile["image"])
        assert tile["label"] == [
            c for c, p in zip(CLASSES, beliefs.probs[row], strict=True) if p > 0.5
        ]
        assert tile["confidence"] == pytest.approx(confidence(beliefs.probs[[row]])[0])


def test_mistakes_name_the_class_that_is_wrong(client: TestClient, made) -> None:
    project, labels = made
    believe(project, labels, 20)
    assert client.get("/api/mistakes").json()["images"] == []
    row = next(row for row in project.store.labelled() if not row["reserved"])
    right = set(labels[row["path"]])
    give(project, row["id"], tuple(right ^ {"blue"}))
    (found,) = client.get("/api/mistakes").json()["images"]
    assert found["image"] == row["id"]
    (doubt,) = found["instead"]
    assert doubt["label"] == "blue"
    assert (doubt["confidence"] > 0.5) == ("blue" in right)
    reply = answer(client, row["id"], sorted(right), "t1", reason="mistake")
    assert reply.status_code == 200
    assert client.get("/api/mistakes").json()["images"] == []
    assert project.store.shown(project.store.image(row["id"])["label"]) == tuple(sorted(right))


def test_people_disagree_about_single_classes(client: TestClient, made) -> None:
    project, labels = made
    believe(project, labels)
    rows = [row for row in project.store.images() if not row["reserved"]][:6]
    for row in rows:
        give(project, row["id"], labels[row["path"]], "ann")
        give(project, row["id"], labels[row["path"]], "bob")
    wrong = rows[2]
    give(project, wrong["id"], tuple({*labels[wrong["path"]]} ^ {"green"}), "bob")
    (dispute,) = client.get("/api/disagreements").json()["images"]
    assert dispute["image"] == wrong["id"]
    said = {each["person"]: set(each["label"]) for each in dispute["answers"]}
    assert said["ann"] ^ said["bob"] == {"green"}
    assert set(dispute["consensus"]["label"]) == set(labels[wrong["path"]])  # the model decides
    (pair,) = client.get("/api/agreement").json()["pairs"]
    assert (pair["images"], pair["agreed"]) == (6, 5)
    assert {name: agreed for name, agreed, _ in pair["classes"]} == {
        "red": 6,
        "green": 5,
        "blue": 6,
    }
    answer(client, wrong["id"], sorted(labels[wrong["path"]]), "t1", reason="disagreement")
    assert client.get("/api/disagreements").json()["images"] == []


def test_search_by_class_prediction_and_none(client: TestClient, made) -> None:
    project, labels = made
    believe(project, labels, 15)

    def find(**query: str) -> set[int]:
        reply = client.get("/api/browse", params={"n": "200", **query}).json()
        return {image["image"] for image in reply["images"]}

    rows = project.store.images()
    given = {row["id"]: set(labels[row["path"]]) for row in rows[:15]}
    assert find(label="red") == {i for i, names in given.items() if "red" in names}
    assert find(state="none") == {i for i, names in given.items() if not names}
    visible = {row["id"]: set(labels[row["path"]]) for row in rows if not row["reserved"]}
    assert find(predicted="red") == {i for i, names in visible.items() if "red" in names}
    assert find(predicted="pink") == set()
    images = client.get("/api/browse?n=200").json()["images"]
    assert all(isinstance(image["label"], list) for image in images if image["image"] in given)
    assert all(
        set(image["predicted"]) == visible[image["image"]]
        for image in images if image["image"] in visible
    )  # fmt: skip


def test_the_dashboard_is_that_of_scikit_learn(client: TestClient, made) -> None:
    project, labels = made
    beliefs = believe(project, labels, 30)
    rows = project.store.images()[:30]
    for row in rows[:6]:  # some labels that the model does not agree with
        give(project, row["id"], tuple({*labels[row["path"]]} ^ {"red"}))
    board = client.get("/api/dashboard").json()
    shown = project.store.shown
    stored = [shown(project.store.image(row["id"])["label"]) for row in rows]
    y = np.array([[c in names for c in CLASSES] for names in stored])
    p = beliefs.checked_probs
    for c, row in enumerate(board["classes"]):
        hits = (y[:, c] & (p[:, c] > 0.5)).sum()
        assert row["precision"]["value"] == pytest.approx(hits / (p[:, c] > 0.5).sum())
        assert row["recall"]["value"] == pytest.approx(hits / y[:, c].sum())
        assert row["audited"] == 6
    scores = board["scores"]
    assert scores["macro_f1"]["value"] == pytest.approx(f1_score(y, p > 0.5, average="macro"))
    assert scores["map"]["value"] == pytest.approx(average_precision_score(y, p, average="macro"))
    assert all(s["low"] <= s["value"] <= s["high"] for s in scores.values())
    assert sum(group["n"] for group in board["calibration"]) == 6
    assert board["matrix"] == []


def test_without_a_model_every_view_is_empty(client: TestClient, made) -> None:
    give(made[0], 1, ("red",))
    for view in ("guesses?label=red", "outliers", "mistakes", "disagreements"):
        assert client.get(f"/api/{view}").json()["images"] == []
    board = client.get("/api/dashboard").json()
    assert board["scores"] == {"macro_f1": None, "map": None}
    assert all(row["precision"] is None for row in board["classes"])


@pytest.mark.long
def test_a_simulated_person_labels_sets_and_the_model_learns(made, tmp_path: Path) -> None:
    project, labels = made
    table = tmp_path / "truth.csv"
    pd.DataFrame(
        [{"path": name, **{c: int(c in names) for c in CLASSES}} for name, names in labels.items()]
    ).to_csv(table, index=False)
    person = Person(read_answers(table, multi=True), CLASSES)
    with Page(project, "127.0.0.1", 0) as page:
        session = person.label(page.link, 25)
        assert session.answers >= 25
        until = time.monotonic() + 240
        while not project.beliefs_file.exists() and time.monotonic() < until:
            time.sleep(0.2)
    beliefs = Beliefs.load(project.beliefs_file)
    rows = [beliefs.row(row["id"]) for row in project.store.images()]
    assert ((beliefs.probs[rows] > 0.5) == truth_of(project, labels)).mean() > 0.85
    stored = {row["path"]: row["label"] for row in project.store.labelled()}
    assert all(set(project.store.shown(text)) == set(labels[path]) for path, text in stored.items())
