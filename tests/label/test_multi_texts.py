"""Texts with several topics, or none: from the table to the exported model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spinal.label.exports.export import export, export_model
from spinal.label.exports.text_predictions import predict_texts, texts_in
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.worker import Worker
from spinal.label.store.project import open_project
from spinal.label.store.texts import text_name
from tests.label.people import work
from tests.label.sets import label_all
from tests.label.texts import CLASSES, COMMON, TOPICS


def make_texts(n: int = 70) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    has = rng.random((n, 2)) < 0.5
    texts = []
    for i, row in enumerate(has):
        own = [
            w for c, on in zip(CLASSES, row, strict=True) if on for w in rng.choice(TOPICS[c], 4)
        ]
        texts.append(f"Number {i}: " + " ".join(rng.permutation([*own, *rng.choice(COMMON, 8)])))
    return texts, has


@pytest.mark.long
def test_texts_with_several_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinal.label.learning.worker.QUIET", 0.0)
    texts, has = make_texts()
    table = tmp_path / "news.csv"
    pd.DataFrame({"body": texts}).to_csv(table, index=False)
    labels = {
        text_name(text): tuple(c for c, on in zip(CLASSES, row, strict=True) if on)
        for text, row in zip(texts, has, strict=True)
    }
    project = open_project(table, classes=CLASSES, text_column="body", multi=True)
    project.scan()
    worker = Worker(project, lambda _: None)
    work(worker)
    label_all(project, labels, 30)
    work(worker)
    beliefs = Beliefs.load(project.beliefs_file)
    names = {row["id"]: row["path"] for row in project.store.images()}
    truth = np.array([[c in labels[names[i]] for c in CLASSES] for i in beliefs.images])
    assert ((beliefs.probs > 0.5) == truth).mean() > 0.85
    marks = json.loads(project.marks_file.read_text())
    words = {word for marked in marks.values() for word, _ in marked}
    assert words & set(TOPICS["sport"])

    export(project, "labels.jsonl", tmp_path / "out.jsonl", predictions=True)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(lines) == len(texts)
    given = [line for line in lines if "label" in line]
    assert len(given) == 30
    assert all(set(line["label"]) == set(labels[text_name(line["text"])]) for line in given)
    assert all(isinstance(line["predicted"], list) for line in lines if "label" not in line)
    export(project, "label-studio", tmp_path / "tasks.json")
    assert 'choice="multiple"' in (tmp_path / "tasks.xml").read_text()

    said = predict_texts(project, texts_in([table], "body"))
    assert list(said.columns[-2:]) == [f"p({c})" for c in CLASSES]
    for row in said.to_dict("records"):
        assert row["predicted"] == ";".join(c for c in CLASSES if row[f"p({c})"] > 0.5)
    written = {path.name for path in export_model(project, tmp_path / "model")}
    assert {"classifier.safetensors", "words.safetensors", "classifier.onnx"} <= written
    project.close()
