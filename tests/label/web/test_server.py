"""The HTTP interface, as the page uses it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project
from spinal.label.web import server
from spinal.label.web.keys import class_keys
from tests.label.conftest import CLASSES

ADA = {"client": "tab-1", "person": "ada"}


def ask(client: TestClient, n: int = 3, *, who: dict[str, str] = ADA) -> list[dict[str, Any]]:
    return client.post("/api/next", json={**who, "n": n}).json()["questions"]


def answer(client: TestClient, image: int, label: str | None, token: str, **more: Any) -> Any:
    given = {"token": token, "image": image, "label": label}
    if "reason" in more:
        given["reason"] = more.pop("reason")
    return client.post("/api/answers", json={**ADA, "n": 3, **more, "answers": [given]})


def believe(project: Project) -> Beliefs:
    """A model that believes image i to be of class i mod 3, the surer the larger i."""
    images = np.array([row["id"] for row in project.store.images()])
    sure = np.linspace(0.4, 0.98, len(images))
    probs = np.repeat(((1 - sure) / 2)[:, None], 3, 1)
    probs[np.arange(len(images)), images % 3] = sure
    checked = images[:10]
    known = Beliefs(
        1, CLASSES, images, probs.astype(np.float32), -images.astype(np.float32), checked,
        probs[:10].astype(np.float32), {"spn": 0.62, "logistic": 0.38},
    )  # fmt: skip
    known.save(project.beliefs_file)
    return known


def test_an_answer_brings_the_next_question(client: TestClient, project: Project) -> None:
    first = ask(client)
    assert len(first) == 3
    reply = answer(client, first[0]["image"], "red", "t1").json()
    assert [q["image"] for q in reply["questions"][:2]] == [q["image"] for q in first[1:]]
    assert len(reply["questions"]) == 3
    assert reply["progress"]["labelled"] == 1
    assert reply["last"] == "t1"
    stored = project.store.answers()[0]
    assert (stored["person"], stored["label"], stored["round"]) == ("ada", "red", 0)
    assert stored["reason"] == first[0]["reason"]
    assert stored["at"].endswith("+00:00")


def test_an_answer_sent_again_is_not_doubled(client: TestClient, project: Project) -> None:
    image = ask(client)[0]["image"]
    for _ in range(3):
        assert answer(client, image, "red", "t1").status_code == 200
    assert len(project.store.answers()) == 1


def test_undo_shows_the_image_again(client: TestClient, project: Project) -> None:
    first = ask(client)[0]
    answer(client, first["image"], "red", "t1")
    for _ in range(2):  # the second time it is sent again
        reply = client.post("/api/undo", json={**ADA, "n": 3, "tokens": ["t1"]}).json()
        assert reply["questions"][0]["image"] == first["image"]
        assert reply["last"] is None
    assert project.store.progress()["labelled"] == 0


def test_two_people_get_different_images(client: TestClient) -> None:
    ada = {q["image"] for q in ask(client, 10)}
    bob = {q["image"] for q in ask(client, 10, who={"client": "tab-2", "person": "bob"})}
    assert len(ada) == len(bob) == 10
    assert not ada & bob
    assert {q["image"] for q in ask(client, 10)} == ada  # after a reload


@pytest.mark.parametrize(
    "wrong",
    [
        {"answers": [{"token": "t", "image": 1, "label": "purple"}]},
        {"answers": [{"token": "t", "image": 999, "label": "red"}]},
        {"answers": [{"token": "t", "image": "1", "label": "red"}]},
        {"answers": [{"token": "", "image": 1, "label": "red"}]},
        {"answers": [{"token": "t", "image": 1, "label": "red", "reason": "model"}]},
        {"answers": [{"token": "t", "image": 2**63, "label": "red"}]},
        {"answers": [{"token": "t", "image": -(10**40), "label": "red"}]},
        {"answers": [{"token": "t", "image": 1, "label": "red"}], "n": 21},
        {"answers": [{"token": "t", "image": 1, "label": "red"}], "client": ""},
        {"answers": []},
        {"answers": "all"},
        {"answers": [{"token": "t", "image": 1, "label": "red"}], "person": "a\nb"},
        {"answers": [{"token": "t", "image": 1, "label": "red"}], "person": ""},
    ],
)
def test_wrong_answers_are_refused_with_a_reason(
    client: TestClient, project: Project, wrong: dict[str, Any]
) -> None:
    refused = client.post("/api/answers", json={**ADA, "n": 1, **wrong})
    assert refused.status_code == 400
    assert refused.json()["error"]
    assert project.store.answers() == []


@pytest.mark.parametrize("label", ["\ud800", ["red", "\ud800"]])
def test_a_class_that_cannot_be_written_is_refused(client: TestClient, label: Any) -> None:
    answer = {"token": "t", "image": 1, "label": label}
    body = {"client": "c", "person": "ada", "answers": [answer]}
    headers = {"Content-Type": "application/json"}
    reply = client.post("/api/answers", content=json.dumps(body), headers=headers)
    assert reply.status_code == 400
    assert "no class '\\ud800'" in reply.json()["error"]


def test_a_body_that_is_not_json_is_refused(client: TestClient) -> None:
    for body in (b"{", b"[1]", b"\xff", b"[" * 200_000, b'{"n": ' + b"9" * 5000 + b"}"):
        headers = {"content-type": "application/json"}
        assert client.post("/api/next", content=body, headers=headers).status_code == 400


def test_numbers_beyond_those_of_the_store_are_unknown_images(client: TestClient) -> None:
    for number in (2**63, 10**30):
        assert client.get(f"/image/{number}").status_code == 400
        assert client.get(f"/thumb/{number}").status_code == 400


def test_a_damaged_file_of_beliefs_loses_no_answer(client: TestClient, project: Project) -> None:
    believe(project)
    content = project.beliefs_file.read_bytes()
    for i in range(40):
        project.beliefs_file.write_bytes(content[:i] + b"\xff\0" + content[i + 2 * i :])
        assert answer(client, 1, "red", f"t{i}").status_code == 200
    assert len(project.store.answers()) == 40
    believe(project)
    assert client.get("/api/outliers").json()["images"]


def test_a_full_disk_is_no_refusal(client: TestClient, project: Project) -> None:
    project.store._database.all("PRAGMA max_page_count = 1")
    for stored in range(3000):
        reply = answer(client, 1 + stored % 40, "red", f"t{stored}" + "x" * 90)
        if reply.status_code != 200:
            break
    assert reply.status_code == 503
    assert "the disk is full" in reply.json()["error"]
    assert len(project.store.answers()) == stored


def test_beliefs_go_with_questions_but_not_in_the_audit(
    client: TestClient, project: Project
) -> None:
    believe(project)
    train = [row["id"] for row in project.store.images() if not row["reserved"]]
    project.store.questions.hand_over(1, [(image, "uncertain") for image in train])
    questions = ask(client, 20)
    assert {q["reason"] for q in questions} == {"uncertain", "audit"}
    for question in questions:
        if question["reserved"]:
            assert question["belief"] is None
        else:
            probs = question["belief"]["probs"]
            assert int(np.argmax(probs)) == question["image"] % 3
            assert sum(probs) == pytest.approx(1, abs=1e-3)


def test_an_image_that_cannot_be_shown_is_replaced(client: TestClient, project: Project) -> None:
    first = ask(client)[0]
    (project.folder / first["path"]).write_bytes(b"gone")
    assert client.get(f"/image/{first['image']}").status_code == 404
    assert first["image"] not in [q["image"] for q in ask(client)]
    listed = client.get("/api/problems").json()["images"]
    assert [each["path"] for each in listed] == [first["path"]]
    assert client.get("/api/state").json()["progress"]["problems"] == 1


def test_guesses_are_sure_unlabelled_and_not_for_the_audit(
    client: TestClient, project: Project
) -> None:
    assert client.get("/api/guesses?label=green").json() == {"images": [], "more": False}
    known = believe(project)
    reserved = {row["id"] for row in project.store.images() if row["reserved"]}
    wanted = [i for i in known.images[::-1].tolist() if i % 3 == 1 and i not in reserved]
    answer(client, wanted[0], "green", "t1", reason="guess")
    page = client.get("/api/guesses?label=green&start=0&n=4").json()
    assert [each["image"] for each in page["images"]] == wanted[1:5]
    assert page["more"]
    rest = client.get("/api/guesses?label=green&start=4&n=100").json()
    assert [each["image"] for each in rest["images"]] == wanted[5:]
    assert not rest["more"]


def test_outliers_come_by_density(client: TestClient, project: Project) -> None:
    known = believe(project)
    reserved = {row["id"] for row in project.store.images() if row["reserved"]}
    found = [each["image"] for each in client.get("/api/outliers").json()["images"]]
    assert found == [i for i in known.images[::-1].tolist() if i not in reserved]


def test_likely_mistakes_until_somebody_has_looked(client: TestClient, project: Project) -> None:
    believe(project)
    train = [r["id"] for r in project.store.images() if not r["reserved"] and r["id"] <= 10]
    right, wrong = train[0], train[1]
    classes = project.settings.classes
    answer(client, right, classes[right % 3], "t1")
    answer(client, wrong, classes[(wrong + 1) % 3], "t2")
    listed = client.get("/api/mistakes").json()["images"]
    assert [(m["image"], m["instead"]) for m in listed] == [(wrong, classes[wrong % 3])]
    answer(client, wrong, classes[(wrong + 1) % 3], "t3", reason="mistake")  # kept as it is
    assert client.get("/api/mistakes").json()["images"] == []


def test_disagreements_are_listed_and_decided(client: TestClient, project: Project) -> None:
    answer(client, 5, "red", "t1")
    answer(client, 5, "blue", "t2", person="bob")
    listed = client.get("/api/disagreements").json()["images"]
    assert listed == [
        {
            "image": 5,
            "path": "image-0004.png",
            "answers": [{"person": "ada", "label": "red"}, {"person": "bob", "label": "blue"}],
            "consensus": None,
        }
    ]
    believe(project)
    (tile,) = client.get("/api/disagreements").json()["images"]
    assert tile["consensus"]["label"] == "blue"  # as the model says, by its number: 5 mod 3 is 2
    assert tile["consensus"]["confidence"] > 1 / 3
    answer(client, 5, "blue", "t3", reason="disagreement")
    assert client.get("/api/disagreements").json()["images"] == []
    assert project.store.image(5)["label"] == "blue"


def test_who_corrects_a_likely_mistake_decides(client: TestClient, project: Project) -> None:
    answer(client, 5, "red", "t1")
    answer(client, 5, "blue", "t2", person="bob", reason="mistake")
    assert project.store.image(5)["label"] == "blue"
    assert client.get("/api/disagreements").json()["images"] == []


def test_bulk_answers_are_all_or_none_and_undone_together(
    client: TestClient, project: Project
) -> None:
    many = [{"token": f"t{i}", "image": i, "label": "red", "reason": "guess"} for i in range(1, 21)]
    assert client.post("/api/answers", json={**ADA, "n": 0, "answers": many}).status_code == 200
    assert project.store.progress()["labelled"] == 20
    tokens = [each["token"] for each in many]
    assert client.post("/api/undo", json={**ADA, "n": 0, "tokens": tokens}).status_code == 200
    assert project.store.progress()["labelled"] == 0
    assert client.post("/api/next", json={**ADA, "n": 0}).json()["questions"] == []


def test_state_says_what_is_in_use(client: TestClient) -> None:
    state = client.get("/api/state?person=ada").json()
    assert state["model"] == "a dense layer on features by pixels"
    assert state["warning"] is None
    assert state["budget"] == 30
    assert state["audit"] == 0.05
    assert state["worker"] == {"state": "off"}
    assert [each["keys"] for each in state["classes"]] == [["1", "r"], ["2", "g"], ["3", "b"]]


def test_many_pages_ask_for_the_state_less_often(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MANY_CLIENTS", 2)
    for n, seconds in ((1, 1.5), (2, 1.5), (3, 2.25), (4, 3.0)):
        who = {"client": f"tab{n}", "person": "ada", "n": 1}
        assert client.post("/api/next", json=who).status_code == 200
        assert client.get("/api/state").json()["poll"] == seconds


def test_state_says_which_classifiers_answer(client: TestClient, project: Project) -> None:
    def shares() -> dict[str, float] | None:
        return client.get("/api/state?person=ada").json()["shares"]

    assert shares() is None
    known = believe(project)
    assert shares() == {"SPN": 0.62, "logistic regression": 0.38}
    older = {name: array for name, array in vars(known).items() if name != "shares"}
    older["classes"] = json.dumps(known.classes)
    with project.beliefs_file.open("wb") as file:
        np.savez(file, **older)
    assert shares() is None


def change(client: TestClient, kind: str, name: str, target: str | None = None) -> Any:
    body = {**ADA, "kind": kind, "name": name, "target": target}
    return client.post("/api/classes", json=body)


def test_classes_are_changed_on_the_page_and_beliefs_follow(
    client: TestClient, project: Project
) -> None:
    believe(project)
    image = next(row["id"] for row in project.store.images() if not row["reserved"])
    answer(client, image, "red", "t1")
    assert change(client, "add", "grey").status_code == 200
    assert change(client, "rename", "red", "crimson").status_code == 200
    reply = change(client, "key", "grey", "X").json()
    assert [c["name"] for c in reply["classes"]] == ["crimson", "green", "blue", "grey"]
    grey = {name: reply["classes"][3][name] for name in ("name", "keys", "own")}
    assert grey == {"name": "grey", "keys": ["4", "x"], "own": "x"}
    state = client.get("/api/state?person=ada").json()
    assert state["classes"] == reply["classes"]
    assert state["progress"]["classes"] == {"crimson": 1}
    belief = next(q["belief"] for q in ask(client, 20) if q["belief"])
    assert len(belief["probs"]) == 4
    assert belief["probs"][0] == belief["probs"][3] == 0  # unknown until the next fit
    refused = change(client, "remove", "red")
    assert refused.status_code == 400
    assert "there is no class 'red'" in refused.json()["error"]
    for kind in ("paint", None, 5):
        assert change(client, kind, "green").status_code == 400  # type: ignore[arg-type]
    change(client, "remove", "crimson")
    assert client.get("/api/state?person=ada").json()["progress"]["labelled"] == 0
    for last in ("gave grey the key X", "renamed red to crimson", "added grey", None):
        assert client.post("/api/classes/undo", json=ADA).json()["last"] == last
    assert client.get("/api/classes").json()["classes"][0]["name"] == "red"
    assert project.store.image(image)["label"] == "red"
    assert client.post("/api/classes/undo", json=ADA).status_code == 400


def test_keys_are_distinct_and_leave_undo_alone() -> None:
    assert class_keys(["arctic fox", "cat", "crow"]) == [["1", "a"], ["2", "c"], ["3", "r"]]
    assert class_keys(["up", "Ünder", "123"]) == [["1", "p"], ["2", "n"], ["3", "a"]]
    many = class_keys([f"class {i}" for i in range(40)])
    keys = [key for each in many for key in each]
    assert len(keys) == len(set(keys)) == 9 + 25
    assert "u" not in keys
