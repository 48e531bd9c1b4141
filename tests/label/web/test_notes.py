"""Notes and flags through the HTTP interface."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from spinal.label.store.project import Project
from tests.label.web.test_browsing import browse, numbers


def note(client: TestClient, images: Any, person: str = "ada", **what: Any) -> Any:
    body = {"client": "c", "person": person, "images": images, **what}
    return client.post("/api/notes", json=body)


def test_flags_and_notes_are_kept_shown_and_found(client: TestClient, project: Project) -> None:
    one, two = numbers(project)[:2]
    reply = note(client, [one, two], flagged=True).json()
    assert reply == {"flagged": True, "notes": [{"person": "ada", "flagged": True, "note": ""}]}
    note(client, [one], "bob", note="blurred")
    assert browse(client, marked="flagged") == sorted([one, two])
    assert browse(client, marked="noted") == [one]
    about = client.get(f"/api/about/{one}").json()
    assert (about["flagged"], about["noted"]) == (True, True)
    assert [(said["person"], said["note"]) for said in about["notes"]] == [
        ("ada", ""), ("bob", "blurred")
    ]  # fmt: skip
    note(client, [one], flagged=False)
    assert browse(client, marked="flagged") == [two]


def test_notes_of_others_do_not_lead_who_is_asked_for_the_audit(
    client: TestClient, project: Project
) -> None:
    everything = [row["id"] for row in project.store.images()]
    note(client, everything, "bob", flagged=True, note="surely red")
    note(client, everything, "ada", note="mine")
    body = {"client": "c", "person": "ada", "n": 20}
    questions = client.post("/api/next", json=body).json()["questions"]
    assert {question["reserved"] for question in questions} == {True, False}
    for question in questions:
        people = {said["person"] for said in question["notes"]}
        assert people == ({"ada"} if question["reserved"] else {"ada", "bob"})
        assert question["flagged"] is not question["reserved"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"images": []}, {"images": "1"}, {"images": ["1"]}, {"images": [1] * 201},
        {"images": [99]}, {"images": [10**30]}, {"flagged": "yes"}, {"note": 5},
        {"note": "x" * 501}, {"note": "a\0b"}, {"person": ""},
    ],
)  # fmt: skip
def test_what_is_not_a_note_is_refused(client: TestClient, wrong: dict[str, Any]) -> None:
    body = {"images": [1], "flagged": True, **wrong}
    reply = note(client, body.pop("images"), **{"person": "ada", **body})
    assert reply.status_code == 400
    assert browse(client, marked="flagged") == []


def test_a_colour_is_chosen_on_the_page(client: TestClient) -> None:
    body = {"client": "c", "person": "ada", "kind": "colour", "name": "green"}
    reply = client.post("/api/classes", json={**body, "target": "#d15d21"}).json()
    chosen = {c["name"]: (c["colour"], c["own_colour"]) for c in reply["classes"]}
    assert chosen["green"] == ("#d15d21", True)
    assert not chosen["red"][1]
    assert client.get("/api/state").json()["classes"] == reply["classes"]
    assert client.post("/api/classes", json={**body, "target": "beige"}).status_code == 400
