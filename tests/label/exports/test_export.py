"""Labels and predictions in other forms, and the commands that write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from spinal import ActiveLearner
from spinal.commands.app import app
from spinal.data import load_csv, load_folder
from spinal.encoders import encode
from spinal.errors import SpinalError
from spinal.label.exports.classifier import ImageClassifier
from spinal.label.exports.export import export, labels_of
from spinal.label.exports.fitted import load_classifier
from spinal.label.exports.folders import folder_names
from spinal.label.exports.label_studio import labelling_configuration
from spinal.label.exports.labels import Labels
from spinal.label.exports.predictions import predict
from spinal.label.exports.table import FORMATS, Format
from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from tests.label.files import make_images, png_that_claims
from tests.label.models import CLASSES, fit_model, make_project


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[Project, dict[str, str]]:
    return make_project(tmp_path / "images")


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Project, dict[str, str], ActiveLearner]:
    """Read only, in the tests below."""
    project, labels = make_project(tmp_path_factory.mktemp("modelled") / "images")
    return project, labels, fit_model(project)


def answers(project: Project, number: int, *given: tuple[str, str | None]) -> None:
    for i, (person, label) in enumerate(given):
        answer = Answer(f"{number}-{person}-{i}", number, label)
        project.store.answer([answer], person)


def test_a_table_that_can_be_read_again(tmp_path: Path, labelled) -> None:
    project, labels = labelled
    (path,) = export(project, str(project.folder / "labels.csv"))
    table = pd.read_csv(path)
    assert list(table) == [
        "path", "label", "person", "at", "round", "reason", "audit", "flagged", "note"
    ]  # fmt: skip
    assert len(table) == 18
    assert dict(zip(table["path"], table["label"], strict=True)) == {
        name: labels[name] for name in table["path"]
    }
    assert set(table["person"]) == {"ann"}
    points = load_csv(path, size=8)
    assert points.classes == ("blue", "green", "red")
    assert len(points.points) == 18


def test_only_what_stands_and_is_agreed_on(labelled) -> None:
    project, _ = labelled
    answers(project, 19, ("bob", "red"))
    project.store.undo("19-bob-0", "bob")
    answers(project, 20, ("bob", None))
    answers(project, 21, ("bob", "red"), ("ann", "blue"))
    answers(project, 22, ("bob", "red"), ("ann", "red"), ("bob", "green"), ("bob", "red"))
    given = labels_of(project).given.set_index("path")
    rows = {row["id"]: row["path"] for row in project.store.images()}
    assert [rows[i] in given.index for i in (19, 20, 21, 22)] == [False, False, False, True]
    assert given.loc[rows[22], ["label", "person"]].tolist() == ["red", "bob"]


def test_a_folder_for_each_class(tmp_path: Path, labelled) -> None:
    project, labels = labelled
    out = tmp_path / "by-class"
    export(project, "imagefolder", out)
    found = load_folder(out, size=8)
    assert found.classes == ("blue", "green", "red")
    names = [path.name for path in found.points.paths]
    assert [found.classes[i] for i in found.labels] == [labels[name] for name in names]
    assert len(names) == 18
    with pytest.raises(SpinalError, match="already exists"):
        export(project, "imagefolder", out)
    assert not out.with_name("by-class.part").exists()


def test_class_names_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    classes = ("../../up", "..", "a/b", "a_b", "A_B", "/etc")
    assert list(folder_names(classes).values()) == [
        "_.._up", "_", "a_b", "a_b_", "A_B__", "_etc",
    ]  # fmt: skip
    make_images(tmp_path / "images", 3)
    project = open_project(tmp_path / "images", classes=classes, encoder="pixels")
    project.scan()
    for number, label in ((1, "../../up"), (2, "..")):
        project.store.answer([Answer(label, number, label)], "ann")
    export(project, "imagefolder", tmp_path / "x" / "out")
    written = [path for path in tmp_path.rglob("*.png") if "images" not in path.parts]
    assert sorted(path.relative_to(tmp_path / "x" / "out").parts[0] for path in written) == [
        "_", "_.._up",
    ]  # fmt: skip


def test_links_that_lead_out_are_not_copied(tmp_path: Path, labelled) -> None:
    project, _ = labelled
    secret = tmp_path / "secret.png"
    Image.new("RGB", (4, 4)).save(secret)
    first = project.folder / project.store.labelled()[0]["path"]
    first.unlink()
    first.symlink_to(secret)
    with pytest.raises(SpinalError, match="leads out"):
        export(project, "imagefolder", tmp_path / "out")


def test_coco(tmp_path: Path, labelled) -> None:
    project, labels = labelled
    (path,) = export(project, "coco", tmp_path / "labels.json")
    coco = json.loads(path.read_text())
    names = {category["id"]: category["name"] for category in coco["categories"]}
    files = {image["id"]: image["file_name"] for image in coco["images"]}
    assert coco["images"][0]["width"] == coco["images"][0]["height"] == 24
    assert len(coco["annotations"]) == len(files) == 18
    for annotation in coco["annotations"]:
        assert names[annotation["category_id"]] == labels[files[annotation["image_id"]]]
        assert annotation["bbox"] == [0, 0, 24, 24]


def test_label_studio(tmp_path: Path, labelled) -> None:
    project, labels = labelled
    path, configuration = export(project, "label-studio", tmp_path / "tasks.json")
    tasks = json.loads(path.read_text())
    assert len(tasks) == 18
    for task in tasks:
        result = task["annotations"][0]["result"][0]
        assert result["value"]["choices"] == [labels[task["data"]["path"]]]
        assert task["data"]["image"] == f"/data/local-files/?d={task['data']['path']}"
    assert configuration.read_text() == labelling_configuration(CLASSES)
    assert 'value="a &amp; &lt;b&gt;"' in labelling_configuration(["a & <b>"])


def test_flags_and_notes(tmp_path: Path, labelled) -> None:
    project, _ = labelled
    one, other = project.store.labelled()[:2]
    skipped = next(row for row in project.store.images() if row["label"] is None)
    project.store.notes.set([one["id"], skipped["id"]], "ada", flagged=True, note='half a "cat"')
    table = pd.read_csv(export(project, "csv", tmp_path / "a.csv")[0]).set_index("path")
    assert table.loc[one["path"], ["flagged", "note"]].tolist() == [True, 'half a "cat"']
    assert not table.loc[other["path"], "flagged"]
    assert pd.isna(table.loc[other["path"], "note"])
    lines = export(project, "jsonl", tmp_path / "a.jsonl")[0].read_text().splitlines()
    said = {row["path"]: row.get("note") for row in map(json.loads, lines)}
    assert {path: note for path, note in said.items() if note} == {one["path"]: 'half a "cat"'}
    images = json.loads(export(project, "coco", tmp_path / "a.json")[0].read_text())["images"]
    noted = {i["file_name"]: (i["flagged"], i["note"]) for i in images if "note" in i}
    assert noted == {one["path"]: (True, 'half a "cat"')}
    tasks = json.loads(export(project, "label-studio", tmp_path / "b.json")[0].read_text())
    data = [task["data"] for task in tasks if "note" in task["data"]]
    assert [(d["path"], d["note"]) for d in data] == [(one["path"], 'half a "cat"')]
    notes = pd.read_csv(export(project, "notes", tmp_path / "notes.csv")[0])
    assert set(notes["path"]) == {one["path"], skipped["path"]}  # also without a label
    assert notes["note"].tolist() == ['half a "cat"'] * 2
    assert notes["flagged"].all()


def test_predictions_for_the_rest(tmp_path: Path, modelled) -> None:
    project, labels, _ = modelled
    (path,) = export(project, "labels.csv", tmp_path / "all.csv", predictions=True)
    table = pd.read_csv(path)
    assert len(table) == 30
    rest = table[table["label"].isna()]
    assert len(rest) == 12
    assert rest["predicted"].tolist() == [labels[name] for name in rest["path"]]
    probs = rest[[f"p({name})" for name in CLASSES]].to_numpy()
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-4)
    np.testing.assert_allclose(probs.max(1), rest["confidence"], rtol=1e-5)
    entropy = -(probs * np.log(np.maximum(probs, 1e-30))).sum(1)
    np.testing.assert_allclose(rest["uncertainty"], entropy, atol=1e-4)


@pytest.mark.parametrize("to", ["imagefolder", "coco", "label-studio"])
def test_predictions_are_told_from_labels(tmp_path: Path, modelled, to: str) -> None:
    project, labels, _ = modelled
    written = export(project, to, tmp_path / "out.json", predictions=True)
    if to == "imagefolder":
        predicted = list((written[0] / "predicted").rglob("*.png"))
        assert {path.name: path.parent.name for path in predicted} == {
            path.name: labels[path.name] for path in predicted
        }
        assert len(list((written[0] / "labelled").rglob("*.png"))) == 18
        assert len(pd.read_csv(written[0] / "predictions.csv")) == len(predicted) == 12
    elif to == "coco":
        coco, results = (json.loads(path.read_text()) for path in written)
        assert len(coco["images"]) == 30
        assert len(coco["annotations"]) == 18
        assert len(results) == 12
        assert all(0 < result["score"] <= 1 for result in results)
    else:
        tasks = json.loads(written[0].read_text())
        assert sum("annotations" in task for task in tasks) == 18
        predictions = [task["predictions"][0] for task in tasks if "predictions" in task]
        uncertainty = [task["data"]["uncertainty"] for task in tasks if "predictions" in task]
        scores = [prediction["score"] for prediction in predictions]
        assert np.argsort(scores).tolist() == np.argsort(uncertainty)[::-1].tolist()


def test_a_line_in_the_table_is_a_new_format(
    tmp_path: Path, labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(labels: Labels, path: Path) -> list[Path]:
        path.write_text("\n".join(labels.given["label"]))
        return [path]

    monkeypatch.setitem(FORMATS, "names", Format("names.txt", write))
    project, labels = labelled
    (path,) = export(project, "names", tmp_path / "out.txt")
    paths = labels_of(project).given["path"]
    assert path.read_text().splitlines() == [labels[name] for name in paths]


def test_what_there_is_not(tmp_path: Path, labelled) -> None:
    project, _ = labelled
    with pytest.raises(SpinalError, match="did you mean 'imagefolder'"):
        export(project, "imagefolders")
    with pytest.raises(SpinalError, match="holds no model yet"):
        export(project, "labels.csv", tmp_path / "out.csv", predictions=True)
    make_images(tmp_path / "empty", 2)
    empty = open_project(tmp_path / "empty", classes=CLASSES)
    with pytest.raises(SpinalError, match="no labels yet"):
        export(empty, "labels.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_images_that_lie_about_their_size_are_not_decoded(tmp_path: Path, modelled) -> None:
    liar = tmp_path / "liar.png"
    liar.write_bytes(png_that_claims(9000, 9000))
    (skipped,) = predict(modelled[0], [liar]).skipped
    assert "claims 9000 x 9000 pixels" in skipped.reason


def test_the_model_is_the_learners(modelled) -> None:
    project, _, learner = modelled
    paths = [project.path(row["path"]) for row in project.store.images()]
    predictions = predict(project, paths)
    points = learner.pool.points[np.arange(len(paths))]
    np.testing.assert_allclose(predictions.probabilities, learner.predict_proba(points), atol=1e-5)
    assert load_classifier(project).classes == CLASSES


def test_commands(tmp_path: Path, modelled, monkeypatch: pytest.MonkeyPatch) -> None:
    project, _, _ = modelled
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    done = run(app, ["export", str(project.folder), "--to", "mine.csv"])
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("mine.csv")) == 18

    expected = make_images(tmp_path / "more", 6, seed=5)
    (tmp_path / "more" / "broken.png").write_text("no image")
    done = run(app, ["predict", str(project.folder), "more"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("path,predicted,confidence,uncertainty,log_density,p(red)")
    assert [line.split(",")[1] for line in lines[1:]] == list(expected.values())
    assert "skipped: more/broken.png: not a PNG, JPEG, WebP, GIF, BMP or TIFF image" in done.stderr

    done = run(app, ["export", str(project.folder), "--to", "model", "--out", "classifier"])
    assert done.exit_code == 0, done.output
    written = sorted(path.name for path in Path("classifier").iterdir())
    assert written == ["classifier.onnx", "classifier.safetensors", "standalone.py"]
    classifier = ImageClassifier.load("classifier/classifier.safetensors")
    features = encode(classifier.encoder, [Image.open("more/image-0000.png")])
    assert CLASSES[classifier.predict(features)[0][0].argmax()] == expected["image-0000.png"]
