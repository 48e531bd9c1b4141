"""Several classes for an image: exports, predictions, and the classifier elsewhere."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spinal.errors import SpinalError
from spinal.label.exports.classifier import ImageClassifier
from spinal.label.exports.export import export, export_model
from spinal.label.exports.predictions import predict
from spinal.label.known.known import read_known
from spinal.label.learning.fitting import fit_project
from spinal.label.store.project import Project
from spinal.ranking.models import load_model
from tests.label.sets import CLASSES, give, make_project


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, tuple]]:
    project, labels = make_project(tmp_path_factory.mktemp("sets") / "images", 30)
    for row in project.store.images()[:20]:
        give(project, row["id"], labels[row["path"]])
    fit_project(project)
    return project, labels


def test_tables_name_all_classes_and_have_a_column_for_each(labelled, tmp_path: Path) -> None:
    project, labels = labelled
    export(project, "labels.csv", tmp_path / "labels.csv", predictions=True)
    table = pd.read_csv(tmp_path / "labels.csv", keep_default_na=False)
    given = table[table["reason"] != ""]
    assert len(given) == 20
    for row in given.to_dict("records"):
        names = labels[row["path"]]
        assert row["label"] == ";".join(sorted(names))
        assert [row[f"y({c})"] for c in CLASSES] == [str(int(c in names)) for c in CLASSES]
    guessed = table[table["reason"] == ""]
    assert len(guessed) == 10
    for row in guessed.to_dict("records"):
        probs = [float(row[f"p({c})"]) for c in CLASSES]
        said = [c for c, p in zip(CLASSES, probs, strict=True) if p > 0.5]
        assert row["predicted"] == ";".join(said)
        assert float(row["confidence"]) == pytest.approx(
            np.prod([max(p, 1 - p) for p in probs]), rel=1e-4
        )
    export(project, "labels.jsonl", tmp_path / "labels.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert {line["path"]: tuple(line["label"]) for line in lines} == {
        name: tuple(sorted(labels[name])) for name in given["path"]
    }


def test_what_is_exported_can_be_read_again(labelled, tmp_path: Path) -> None:
    project, labels = labelled
    names = [row["path"] for row in project.store.labelled()]
    expected = {name: set(labels[name]) for name in names}
    assert set() in expected.values()
    for form in ("labels.csv", "label-studio"):
        target = tmp_path / ("labels.csv" if form == "labels.csv" else "tasks.json")
        export(project, form, target)
        known = read_known(target, project.folder, multi=True)
        assert {name: set(label) for name, label in known.labels.items()} == expected


def test_coco_and_label_studio(labelled, tmp_path: Path) -> None:
    project, labels = labelled
    export(project, "coco", tmp_path / "coco.json", predictions=True)
    coco = json.loads((tmp_path / "coco.json").read_text())
    files = {image["id"]: image["file_name"] for image in coco["images"]}
    category = {each["id"]: each["name"] for each in coco["categories"]}
    said: dict[str, set[str]] = {}
    for each in coco["annotations"]:
        said.setdefault(files[each["image_id"]], set()).add(category[each["category_id"]])
    given = [row["path"] for row in project.store.labelled()]
    assert said == {name: set(labels[name]) for name in given if labels[name]}
    results = json.loads((tmp_path / "coco-predictions.json").read_text())
    assert len(results) == 10 * len(CLASSES)
    export(project, "label-studio", tmp_path / "tasks.json", predictions=True)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    for task in tasks[:20]:
        result = task["annotations"][0]["result"]
        choices = result[0]["value"]["choices"] if result else []
        assert sorted(choices) == sorted(labels[task["data"]["path"]])
    assert all(0 <= task["predictions"][0]["score"] <= 1 for task in tasks[20:])
    assert 'choice="multiple"' in (tmp_path / "tasks.xml").read_text()


def test_folders_are_refused(labelled, tmp_path: Path) -> None:
    with pytest.raises(SpinalError, match="can have several: export to"):
        export(labelled[0], "imagefolder", tmp_path / "folders")
    assert not (tmp_path / "folders").exists()


@pytest.mark.long
def test_the_model_says_the_same_elsewhere(labelled, tmp_path: Path) -> None:
    project, labels = labelled
    written = export_model(project, tmp_path / "model")
    assert {path.name for path in written} >= {"classifier.safetensors", "classifier.onnx"}
    paths = [project.path(name) for name in labels]
    said = predict(project, paths)
    assert said.multi
    truth = np.array([[c in labels[path.name] for c in CLASSES] for path in said.paths])
    assert ((said.probabilities > 0.5) == truth).mean() > 0.85
    classifier = ImageClassifier.load(tmp_path / "model" / "classifier.safetensors")
    prepared = np.stack([classifier.encoder.prepare(path.read_bytes()) for path in said.paths])
    features = classifier.encoder.embed(list(prepared))
    probs, density = classifier.predict(features)
    np.testing.assert_allclose(probs, said.probabilities, atol=1e-5)
    np.testing.assert_allclose(density, said.log_density, rtol=1e-4)
    # The module that is written beside it, alone.
    place = tmp_path / "model" / "standalone.py"
    spec = importlib.util.spec_from_file_location("standalone_of_sets", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import torch

    alone = module.load(tmp_path / "model" / "classifier.safetensors")
    assert alone.classes == CLASSES
    np.testing.assert_allclose(alone(torch.from_numpy(features))[0].numpy(), probs, atol=1e-6)
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "model" / "classifier.onnx")
    by_onnx = session.run(["probabilities"], {"pixels": prepared})[0]
    np.testing.assert_allclose(by_onnx, probs, atol=1e-4)


def test_it_cannot_rank(labelled, tmp_path: Path) -> None:
    with pytest.raises(SpinalError, match="use spinal predict"):
        load_model(labelled[0].folder)


def test_a_class_that_came_later_is_empty_in_the_table(tmp_path: Path) -> None:
    project, _ = make_project(tmp_path / "images", 4)
    give(project, 1, ("red",))
    project.store.classes.add("pink", "ada")
    give(project, 2, ())
    export(project, "labels.csv", tmp_path / "labels.csv")
    table = pd.read_csv(tmp_path / "labels.csv", keep_default_na=False, dtype=str)
    assert table["y(pink)"].tolist() == ["", "0"]
    project.close()
