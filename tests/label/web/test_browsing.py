"""The view of all images: what a search finds, checked against the images themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from spinal.label.learning.likeness import Likeness
from spinal.label.store.project import Project
from spinal.label.store.store import Answer
from tests.label.conftest import CLASSES
from tests.label.web.test_server import answer, believe


def browse(client: TestClient, **query: Any) -> list[int]:
    return [image["image"] for image in client.get("/api/browse", params=query).json()["images"]]


def numbers(project: Project, *, reserved: bool = False) -> list[int]:
    """Numbers of the images that are not for the audit, or of those that are."""
    return [row["id"] for row in project.store.images() if bool(row["reserved"]) == reserved]


def features(project: Project, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Features of all images, in an order of their own in the file."""
    rng = np.random.default_rng(0)
    images = np.array([row["id"] for row in project.store.images()])
    vectors = rng.normal(size=(len(images) + 3, width)).astype(np.float32)
    places = rng.permutation(len(vectors))[: len(images)]
    file = project.features_folder / "some-encoder" / "vectors.f32"
    file.parent.mkdir(parents=True, exist_ok=True)
    vectors.tofile(file)
    Likeness(images, places, width, file).save(project.likeness_file)
    return images, vectors[places]


def test_all_images_in_pages(client: TestClient, project: Project) -> None:
    paths = [row["path"] for row in project.store.images()]
    first = client.get("/api/browse?n=15").json()
    last = client.get("/api/browse?start=30&n=15").json()
    assert [image["path"] for image in first["images"]] == sorted(paths)[:15]
    assert [image["path"] for image in last["images"]] == sorted(paths)[30:]
    assert first["total"] == last["total"] == 40


def test_states_classes_people_and_names(client: TestClient, project: Project) -> None:
    one, two, three, four = numbers(project)[:4]
    store = project.store
    store.answer([Answer("a", one, "red"), Answer("b", two, "red")], "ada")
    store.answer([Answer("c", two, "blue"), Answer("d", three, None)], "bob")
    store.set_problems([(store.image(four)["path"], "damaged")])
    assert browse(client, state="labelled") == [one]
    assert browse(client, state="disputed") == [two]
    assert browse(client, state="skipped") == [three]
    assert browse(client, state="problem") == [four]
    assert len(browse(client, state="unlabelled")) == 36
    assert browse(client, label="red") == [one]
    assert browse(client, person="bob") == [two, three]
    assert browse(client, person="bob", state="disputed") == [two]
    assert browse(client, order="recent")[:3] == [three, two, one]
    path = store.image(one)["path"]
    assert browse(client, name=path[3:-4].upper()) == [one]
    assert browse(client, name="%") == []  # no wildcard


def test_by_confidence_without_images_of_the_audit(client: TestClient, project: Project) -> None:
    assert browse(client, order="sure") == []
    known = believe(project)
    best, sure = known.probs.argmax(1), known.probs.max(1)
    free = np.isin(known.images, numbers(project))
    wanted = known.images[free & (sure >= 0.5) & (sure <= 0.8) & (best == 1)]
    query = {"low": 0.5, "high": 0.8, "predicted": CLASSES[1]}
    assert browse(client, **query, order="unsure") == wanted.tolist()
    assert browse(client, **query, order="sure") == wanted[::-1].tolist()
    assert browse(client, predicted="no class") == []
    shown = client.get("/api/browse").json()["images"]
    assert {image["image"] for image in shown if image["predicted"] is None} == set(
        numbers(project, reserved=True)
    )


def test_by_likeness(client: TestClient, project: Project) -> None:
    one = numbers(project)[0]
    assert browse(client, like=one) == []  # no features yet
    images, vectors = features(project)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[images == one][0]
    order = [image for image in images[np.argsort(-cosines)].tolist() if image != one]
    shown = client.get("/api/browse", params={"like": one}).json()["images"]
    assert [image["image"] for image in shown] == order
    assert shown[0]["likeness"] == pytest.approx(np.sort(cosines)[-2], abs=1e-6)
    answer(client, order[3], "red", "t", reason="browse")
    assert browse(client, like=one, label="red") == [order[3]]


def test_likeness_to_some(project: Project) -> None:
    images, _ = features(project)
    likeness = Likeness.load(project.likeness_file, project.features_folder)
    everywhere = dict(zip(*likeness.compare(images[0]), strict=True))
    some, cosines = likeness.compare(images[0], images[[7, 3]])
    assert some.tolist() == images[[3, 7]].tolist()
    assert cosines == pytest.approx([everywhere[image] for image in some])
    assert len(likeness.compare(999_999)[0]) == 0


def test_damaged_features_are_as_good_as_none(
    client: TestClient, project: Project, tmp_path: Path
) -> None:
    features(project)
    (project.features_folder / "some-encoder" / "vectors.f32").write_bytes(b"short")
    assert browse(client, like=numbers(project)[0]) == []
    outside = tmp_path / "images" / "vectors.f32"
    outside.write_bytes(bytes(4000))
    images = np.array(numbers(project))
    odd = Likeness(images, np.arange(len(images)), 6, outside)
    object.__setattr__(odd, "file", Path("..") / "vectors.f32")
    odd.save(project.likeness_file)
    assert browse(client, like=numbers(project)[0]) == []


def test_relabelling_decides_and_is_undone(client: TestClient, project: Project) -> None:
    one = numbers(project)[0]
    project.store.answer([Answer("a", one, "red")], "bob")
    answer(client, one, "blue", "t", reason="browse")
    assert project.store.image(one)["label"] == "blue"  # not a dispute
    client.post("/api/undo", json={"client": "c", "person": "ada", "tokens": ["t"]})
    assert project.store.image(one)["label"] == "red"


def test_images_of_the_audit_wait_for_their_turn(client: TestClient, project: Project) -> None:
    image = numbers(project, reserved=True)[0]
    refused = answer(client, image, "red", "t1", reason="browse")
    assert refused.status_code == 400
    assert "audit" in refused.json()["error"]
    answer(client, image, "red", "t2")
    assert answer(client, image, "blue", "t3", reason="browse").status_code == 200
    assert project.store.image(image)["label"] == "blue"


def test_about_one_image(client: TestClient, project: Project) -> None:
    one = numbers(project)[0]
    answer(client, one, "red", "t1")
    about = client.get(f"/api/about/{one}").json()
    assert (about["image"], about["label"]) == (one, "red")
    assert [(a["person"], a["label"]) for a in about["answers"]] == [("ada", "red")]
    assert client.get("/api/about/999999").status_code == 400


def test_neighbours_are_the_nearest_labelled_images(client: TestClient, project: Project) -> None:
    one, *others = numbers(project)
    images, vectors = features(project)
    for image in [one, *others[:9]]:
        answer(client, image, "red", f"t{image}", reason="browse")
    unit = dict(
        zip(images.tolist(), vectors / np.linalg.norm(vectors, axis=1)[:, None], strict=True)
    )
    expected = sorted(others[:9], key=lambda image: -float(unit[image] @ unit[one]))[:6]
    shown = client.get(f"/api/neighbours/{one}").json()["images"]
    assert [image["image"] for image in shown] == expected
    assert {image["label"] for image in shown} == {"red"}
    kept = numbers(project, reserved=True)[0]
    assert client.get(f"/api/neighbours/{kept}").json() == {"images": []}
    assert client.get("/api/neighbours/999999").status_code == 400


@pytest.mark.parametrize(
    "query",
    ["state=odd", "order=odd", "like=-1", "like=x", "low=2", "high=x", "low=nan", "start=-1",
     f"name={'x' * 201}", "like=999999"],
)  # fmt: skip
def test_odd_searches_are_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/api/browse?{query}").status_code == 400
