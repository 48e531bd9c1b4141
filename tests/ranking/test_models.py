"""Models of the page rank images and texts: from tar and Parquet files to the same predictions."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spinal.commands.app import main
from spinal.errors import SpinalError
from spinal.label.exports.fitted import load_classifier, load_text_classifier
from spinal.label.learning.fitting import fit_project
from spinal.label.store.project import open_project
from spinal.label.store.store import Answer
from spinal.ranking import rank
from tests.label.models import fit_model, make_project
from tests.label.texts import CLASSES, make_texts, write_table
from tests.ranking.conftest import add

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """A project of images with a model, and the margin of each image by its classifier."""
    folder = tmp_path_factory.mktemp("images")
    project, _ = make_project(folder)
    fit_model(project)
    classifier = load_classifier(project)
    names = [str(row["path"]) for row in project.store.images()]
    prepared = [classifier.encoder.prepare((folder / name).read_bytes()) for name in names]
    p = np.sort(classifier.predict(classifier.encoder.embed(prepared))[0], 1)
    project.close()
    return folder, dict(zip(names, (p[:, -1] - p[:, -2]).tolist(), strict=True))


def key(name: str) -> str:
    """The name of a point in a tar file: up to the first dot."""
    return name.partition(".")[0]


def test_images_in_tar_files(images: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    folder, margins = images
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for name in margins:
            add(tar, name, (folder / name).read_bytes())
            add(tar, f"{key(name)}.txt", b"a caption")
        add(tar, "broken.png", b"no image")
    out = tmp_path / "out.parquet"
    with pytest.raises(SpinalError, match=r"files: choose with --column"):
        rank(tmp_path / "0.tar", folder, out, workers=1)
    kinds = sorted({name.rpartition(".")[2] for name in margins} | {"png"})
    ranking = rank(tmp_path / "0.tar", folder, out, workers=1, column=kinds)
    table = ranking.read()
    assert (ranking.ranked, ranking.skipped) == (len(margins), 1)
    expected = {key(name): value for name, value in margins.items()}
    found = dict(zip(table["id"], table["margin"], strict=True))
    assert found == pytest.approx(expected, abs=1e-5)
    assert table["margin"].is_monotonic_increasing


def test_images_in_parquet_as_hugging_face_has_them(
    images: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    folder, margins = images
    values = [{"bytes": (folder / name).read_bytes(), "path": name} for name in margins]
    pd.DataFrame({"image": values, "key": list(margins)}).to_parquet(tmp_path / "0.parquet")
    ranking = rank(tmp_path / "0.parquet", folder, tmp_path / "out.parquet", workers=1,
                   column="image", id_column="key")  # fmt: skip
    found = ranking.read().set_index("id")["margin"].to_dict()
    assert found == pytest.approx(margins, abs=1e-5)


@pytest.mark.parametrize("exported", [False, pytest.param(True, marks=pytest.mark.long)])
def test_texts_in_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: bool, capsys: pytest.CaptureFixture
) -> None:
    texts, labels = make_texts(60)
    place = tmp_path / "texts.csv"
    write_table(place, texts)
    project = open_project(place, classes=CLASSES, text_column="body")
    project.scan()
    for row in project.store.images()[:40]:
        text = project.texts.text(row["path"])
        answer = Answer(f"t-{row['id']}", row["id"], labels[texts.index(text)])
        project.store.answer([answer], "ann")
    fit_project(project)
    classifier = load_text_classifier(project)
    model = place
    if exported:
        pytest.importorskip("onnxruntime")
        model = tmp_path / "model"
        classifier.save(model)
    project.close()
    more, _ = make_texts(300, seed=1)
    pd.DataFrame({"body": more}).to_parquet(tmp_path / "more.parquet")
    out = tmp_path / "out.parquet"
    arguments = ["spinal", "rank", str(tmp_path / "more.parquet"), "--model", str(model)]
    arguments += ["--out", str(out), "--workers", "1", "--top", "50"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "50 of 300 points" in capsys.readouterr().out
    table = pd.read_parquet(out)
    p = classifier.predict_texts(more)[0]
    two = np.sort(p, 1)[:, -2:]
    order = np.argsort(two[:, 1] - two[:, 0], kind="stable")[:50]
    assert set(table["row"]) == set(order)
    said = [CLASSES[i] for i in p[table["row"]].argmax(1)]
    assert table["predicted"].tolist() == said
