"""Texts from a table or a folder: asked, learnt, shown, exported, predicted."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from starlette.testclient import TestClient

from spinal.encoders import EncoderError
from spinal.encoders.vectors import content_hash
from spinal.errors import DataError, SpinalError
from spinal.label.exports.export import export, export_model
from spinal.label.exports.fitted import load_text_classifier
from spinal.label.exports.text_predictions import predict_texts, texts_in
from spinal.label.learning.features import project_encoder
from spinal.label.learning.marks import Marker
from spinal.label.learning.worker import Worker
from spinal.label.store.given import open_texts
from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from spinal.label.store.texts import text_name
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from spinal.label.web.simulate import read_answers
from tests.label.people import work
from tests.label.texts import CLASSES, TOPICS, make_texts, write_table

TEXTS, LABELS = make_texts()
TEXTS = [*TEXTS, TEXTS[0]]  # one occurs twice
TRUTH = {text_name(text): label for text, label in zip(TEXTS, LABELS, strict=False)}


def answer(project: Project, n: int) -> None:
    for row in project.store.images()[:n]:
        given = Answer(f"token-{row['id']}", row["id"], TRUTH[row["path"]])
        project.store.answer([given], "ann")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "reviews.csv"
    write_table(path, TEXTS)
    return path


@pytest.fixture(scope="module")
def project(table: Path) -> Iterator[Project]:
    """A project with 30 labels, a model, and marked words."""
    project = open_project(table, classes=CLASSES, text_column="body")
    project.scan()
    answer(project, 30)
    work(Worker(project, lambda _: None))
    yield project
    project.close()


def test_a_text_is_known_by_its_content(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    write_table(table, [*TEXTS, "", "  "])
    project = open_project(table, classes=CLASSES, text_column="body")
    assert project.home == tmp_path / "reviews.csv.spinal"
    assert project.scan() == 60  # neither the one that occurs twice, nor those without a word
    assert project.texts is not None
    name = text_name(TEXTS[0])
    assert bytes.fromhex(name) == content_hash(TEXTS[0].encode())
    assert project.texts.places(name) == ["1", "61"]
    assert project.texts.title(name) == "row 1, and 1 more like it"
    answer(project, 1)
    write_table(table, ["A new one.", *TEXTS[:10]])
    os.utime(table, ns=(1, 1))
    assert project.scan() == 1
    assert project.texts.places(name) == ["2"]
    assert [row["path"] for row in project.store.labelled()] == [name]
    problems = {row["path"]: row["problem"] for row in project.store.problems()}
    assert len(problems) == 50
    assert problems[text_name(TEXTS[20])] == "no longer in reviews.csv"
    project.close()
    again = open_project(table)  # all is in its file
    assert (again.settings.kind, again.settings.text_column) == ("texts", "body")
    again.close()
    again = open_project(project.home)
    assert again.folder == table
    again.close()


def test_folders_and_json_lines(tmp_path: Path) -> None:
    folder = tmp_path / "mails"
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("First.", encoding="utf-8")
    (folder / "old" / "b.txt").write_bytes("Caf\xe9.".encode("cp1252"))
    project = open_project(folder, classes=CLASSES)
    assert project.scan() == 2
    assert project.texts is not None
    shown = {project.texts.title(n): project.texts.text(n) for n in project.store.paths()}
    assert shown == {"a.txt": "First.", "old/b.txt": "Caf\xe9."}
    project.close()
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"text": "One."}\n\n{"text": null}\n{"text": "Two\\nlines."}\n')
    project = open_project(lines, classes=CLASSES)
    assert project.scan() == 2
    assert project.texts is not None
    assert project.texts.places(text_name("Two\nlines.")) == ["3"]
    project.close()


def test_texts_of_a_data_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"body": ["One.", None, "Two\u2028lines."], "stars": [1, 2, 3]})
    project = open_texts(frame, tmp_path / "home", text_column="body", classes=CLASSES)
    assert project.scan() == 2
    assert project.texts is not None
    assert project.texts.places(text_name("Two\u2028lines.")) == ["3"]
    project.close()
    project = open_texts(["One.", "Three."], tmp_path / "home")
    assert project.scan() == 1
    project.close()
    again = open_project(tmp_path / "home")  # as the commands do
    assert len(again.store.paths()) == 3
    again.close()
    with pytest.raises(DataError, match="no column 'text' among body, stars"):
        open_texts(frame, tmp_path / "other", classes=CLASSES)
    with pytest.raises(DataError, match="text 1 is a int: give strings"):
        open_texts(["a", 1], tmp_path / "other", classes=CLASSES)


def test_wrong_inputs_say_what_to_do(tmp_path: Path, table: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes(table.read_bytes())
    project = open_project(copy, classes=CLASSES)
    with pytest.raises(DataError, match=r"no column 'text' among id, body: .*--text-column"):
        project.scan()
    project.close()
    with pytest.raises(DataError, match="no such folder or table"):
        open_project(tmp_path / "none.csv", classes=CLASSES)
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    project = open_project(tmp_path / "bad.jsonl", classes=CLASSES)
    with pytest.raises(DataError, match="not a JSON object"):
        project.scan()
    project.close()
    with pytest.raises(SpinalError, match="texts take `dense`"):
        open_project(copy, tmp_path / "p", classes=CLASSES, network="lenet")
    project = open_project(copy, tmp_path / "q", classes=CLASSES, encoder="pixels")
    with pytest.raises(EncoderError, match="holds texts"):
        project_encoder(project)
    project.close()


def test_the_model_learns_the_topics(project: Project) -> None:
    classifier = load_text_classifier(project)
    texts, labels = make_texts(100, seed=1)
    said = classifier.predict_texts(texts)[0].argmax(1)
    assert np.mean([CLASSES[i] == label for i, label in zip(said, labels, strict=True)]) > 0.9


def test_marked_words_are_those_without_which_the_guess_is_less_sure(project: Project) -> None:
    classifier = load_text_classifier(project)
    marker = Marker(project, classifier.encoder)
    text = "Today the team had a great match, and soup."
    marks = dict(marker.mark(text))
    assert {"team", "match"} <= marks.keys()
    assert not marks.keys() & set(TOPICS["food"])
    p = classifier.predict_texts([text, text.replace("match", "")])[0][:, 0].astype(float)
    odds = np.log(p / (1 - p))
    assert marks["match"] == pytest.approx(odds[0] - odds[1], abs=0.01)


def test_the_page_shows_texts(project: Project) -> None:
    client = TestClient(
        Server(project, Rules("127.0.0.1", 8421, None)).app, base_url="http://127.0.0.1:8421"
    )
    assert client.get("/api/state").json()["kind"] == "texts"
    marks = json.loads(project.marks_file.read_text())
    rows = {row["id"]: row for row in project.store.images()}
    marked = next(int(number) for number, words in marks.items() if words)
    shown = client.get(f"/text/{marked}").json()
    assert shown["text"] in TEXTS
    assert shown["title"].startswith("row ")
    assert shown["marks"] == marks[str(marked)]
    reserved = next(i for i, row in rows.items() if row["reserved"])
    assert client.get(f"/text/{reserved}").json()["marks"] == []
    assert client.get("/text/999").status_code == 400
    assert client.get(f"/thumb/{marked}").status_code == 404
    assert project.store.problems() == []
    found = client.get("/api/browse?name=NUMBER 17:").json()["images"]
    assert [TEXTS.index(client.get(f"/text/{each['image']}").json()["text"]) for each in found] == [
        17
    ]
    guesses = client.get("/api/guesses?label=food").json()["images"]
    assert guesses
    assert client.get(f"/text/{guesses[0]['image']}").json()["marks"]


def read(path: Path) -> list[dict[str, Any]]:
    return pd.read_csv(path).to_dict("records")


def test_exports(project: Project, tmp_path: Path) -> None:
    export(project, "labels.csv", tmp_path / "labels.csv")
    rows = read(tmp_path / "labels.csv")
    assert len(rows) == 31  # one text stands in two rows
    assert rows[0]["row"] == 1
    assert rows[-1]["row"] == 61
    assert all(TRUTH[text_name(row["text"])] == row["label"] for row in rows)
    export(project, "jsonl", tmp_path / "labels.jsonl", predictions=True)
    lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert len(lines) == 61
    assert {"row", "text", "label", "person"} <= lines[0].keys()
    assert "predicted" not in lines[0]
    assert "label" not in lines[-1]
    assert 0 < lines[-1]["p(food)"] < 1
    export(project, "label-studio", tmp_path / "studio.json", predictions=True)
    tasks = json.loads((tmp_path / "studio.json").read_text())
    assert tasks[0]["data"] == {"row": 1, "text": TEXTS[0]}
    assert tasks[0]["annotations"][0]["result"][0]["to_name"] == "text"
    assert '<Text name="text" value="$text"/>' in (tmp_path / "studio.xml").read_text()
    with pytest.raises(SpinalError, match="is for images"):
        export(project, "coco", tmp_path / "x.json")


def test_predictions_of_tables_and_files(project: Project, tmp_path: Path) -> None:
    write_table(tmp_path / "more.csv", ["A goal for the team", "Salt the soup, today"], "review")
    (tmp_path / "a.txt").write_text("bread from the oven for dinner")
    texts = texts_in([tmp_path / "more.csv", tmp_path / "a.txt"], "review")
    said = predict_texts(project, texts)
    assert said["predicted"].tolist() == ["sport", "food", "food"]
    assert said["row"].tolist()[:2] == [1, 2]
    assert said["path"].tolist()[2].endswith("a.txt")
    with pytest.raises(DataError, match=r"no \.txt files"):
        texts_in([project.home / "features"], "review")


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"exported_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_exported_model_encodes_texts_by_itself(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    written = export_model(project, tmp_path)
    assert {path.name for path in written} == {
        "classifier.safetensors", "standalone.py", "words.safetensors", "words.py",
        "classifier.onnx",
    }  # fmt: skip
    encode = load_module(tmp_path / "words.py").load(tmp_path / "words.safetensors")
    loaded = load_module(tmp_path / "standalone.py").load(tmp_path / "classifier.safetensors")
    texts = [*make_texts(5, seed=2)[0], "nothing that it knows"]
    expected = load_text_classifier(project).predict_texts(texts)
    with torch.inference_mode():
        probs, density = loaded(torch.from_numpy(encode(texts)))
    assert np.allclose(probs, expected[0], atol=1e-6)
    assert np.allclose(density, expected[1], atol=1e-3)
    counts = np.zeros((len(texts), len(encode.vocabulary)), np.float32)
    for i, text in enumerate(texts):
        places, how_often = encode.count(text)
        counts[i, places] = how_often
    session = onnxruntime.InferenceSession(str(tmp_path / "classifier.onnx"))
    assert np.allclose(session.run(["probabilities"], {"counts": counts})[0], probs, atol=1e-4)


def test_a_simulated_person_knows_texts(tmp_path: Path) -> None:
    pd.DataFrame({"body": TEXTS[:3], "label": LABELS[:3]}).to_csv(tmp_path / "a.csv", index=False)
    answers = read_answers(tmp_path / "a.csv", "body")
    assert answers == {text_name(t): c for t, c in zip(TEXTS[:3], LABELS[:3], strict=True)}
