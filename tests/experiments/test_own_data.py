"""Protocols on data of one's own: from each kind of file to a report's numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from spinal.data import DataSettings, load_dataset, make_dataset
from spinal.errors import SpinalError
from spinal.experiments import Protocol, execute, load_protocol, make_runs, run_grid
from spinal.experiments.protocol import NetworkProtocol

N = 60
LABELS = np.arange(N) % 2
VECTORS = np.random.default_rng(0).normal(size=(N, 3)) + 4 * LABELS[:, None]
TEXTS = [f"{'ripe apples' if y else 'a hammer'} number {i}" for i, y in enumerate(LABELS)]
QUICK = {"min-steps": 3, "max-steps": 3}

TOML = """
dataset = "{path}"
initial = 8
batch = 2
rounds = 1

[data]
{data}

[network]
name = "dense"
width = 0.125
training = {{ min-steps = 3, max-steps = 3 }}
"""


def write_table(path: Path) -> None:
    table = pd.DataFrame(VECTORS, columns=["a", "b", "c"])
    table["colour"] = np.where(LABELS, "red", "grey")
    table["label"] = np.where(LABELS, "fruit", "tool")
    table.to_csv(path, index=False)


def write_texts(path: Path) -> None:
    pd.DataFrame({"body": TEXTS, "kind": LABELS, "author": np.arange(N) // 5}).to_csv(path)


def write_arrays(path: Path) -> None:
    np.savez(path, x=VECTORS[:40], y=LABELS[:40], x_test=VECTORS[40:], y_test=LABELS[40:])


def write_images(folder: Path) -> None:
    for i, y in enumerate(LABELS):
        (folder / str(y)).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (200 * int(y), i, 0)).save(folder / str(y) / f"{i}.png")


OWN = {
    "table.csv": (write_table, 'columns = ["a", "colour"]\ntest = 0.5'),
    "reviews.csv": (write_texts, 'text = "body"\nlabel = "kind"\ngroup = "author"'),
    "data.npz": (write_arrays, ""),
    "photos": (write_images, "size = 8"),
}


@pytest.mark.parametrize("name", OWN)
def test_from_a_file_in_a_protocol_to_an_accuracy(name: str, tmp_path: Path) -> None:
    write, data = OWN[name]
    write(tmp_path / name)
    file = tmp_path / "mine.toml"
    file.write_text(TOML.format(path=tmp_path / name, data=data))
    (run,) = make_runs([load_protocol(file)], ["logistic"], [], [0], tmp_path / "runs")
    run_grid([run], workers=1)
    assert run.rounds()[-1].labels == 10
    assert run.rounds()[-1].accuracy > 0.8
    assert 'fingerprint = "' in (run.folder / "run.toml").read_text()
    run_grid([run], workers=1)  # finished: nothing to do


def test_changed_data_are_noticed_even_when_the_run_is_finished(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv")
    network = NetworkProtocol("dense", 0.125, training=QUICK)
    protocol = Protocol("own", dataset=str(tmp_path / "t.csv"), rounds=0, network=network)
    (run,) = make_runs([protocol], ["deterministic"], [], [0], tmp_path)
    execute(run)
    table = pd.read_csv(tmp_path / "t.csv")
    table.loc[7, "b"] += 1e-3
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SpinalError, match=r"fingerprint was '\w+', is '\w+'"):
        run_grid([run], workers=1)
    run_grid([replace(run, out=tmp_path / "new")], workers=1)


def test_a_dataset_in_memory_is_run(tmp_path: Path) -> None:
    protocol = Protocol("mine", rounds=0, initial=6, network=NetworkProtocol("dense", 0.125,
                        training=QUICK))  # fmt: skip
    (run,) = make_runs([protocol], ["logistic"], [], [0], tmp_path)
    run_grid([run], workers=1, dataset=make_dataset(TEXTS, LABELS, test=(TEXTS[:4], LABELS[:4])))
    assert run.rounds()[0].class_counts is not None
    with pytest.raises(SpinalError, match=r"fingerprint was '.*', is None"):
        run_grid([run], workers=1)  # on digits, as the protocol says
    with pytest.raises(SpinalError, match="fingerprint"):
        run_grid([run], workers=1, dataset=make_dataset(TEXTS[::-1], LABELS[::-1]))


def test_missing_values_in_a_table_go_with_a_method_that_leaves_them_out(tmp_path: Path) -> None:
    table = np.where(np.random.default_rng(0).random(VECTORS.shape) < 0.2, np.nan, VECTORS)
    network = NetworkProtocol("dense", 0.125, training=QUICK)
    protocol = Protocol("holes", rounds=1, initial=20, batch=5, network=network)
    runs = make_runs([protocol], ["sklearn.ensemble:HistGradientBoostingClassifier"], [], [0],
                     tmp_path)  # fmt: skip
    assert "sklearn.ensemble-HistGradientBoostingClassifier-margin" in str(runs[0].folder)
    run_grid(runs, workers=1, dataset=make_dataset(table, LABELS))
    assert runs[0].rounds()[-1].logistic_accuracy is None
    (refused,) = make_runs([protocol], ["logistic"], [], [0], tmp_path)
    with pytest.raises(SpinalError, match="missing features"):
        run_grid([refused], workers=1, dataset=make_dataset(table, LABELS))


def test_the_split_is_by_group_and_the_encoder_sees_no_test_texts(tmp_path: Path) -> None:
    groups = np.arange(N) // 5
    texts = [f"{text} group{g}" for text, g in zip(TEXTS, groups, strict=True)]
    dataset = make_dataset(texts, LABELS, test=0.3, groups=groups)
    parts = [{text.split()[-1] for text in points.items}
             for points in (dataset.train_images, dataset.test_images)]  # fmt: skip
    assert not parts[0] & parts[1]
    assert 0.3 * N <= len(dataset.test_labels) < 0.3 * N + 5
    known = dataset.train_images._encode._words.vocabulary_
    assert not parts[1] & known.keys()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("table.csv", {"label": "kind"}, r"no column 'kind' among a, b, .*\[data\]"),
        ("table.csv", {"text": "body"}, "no column 'body'"),
        ("table.csv", {"group": "who"}, "no column 'who'"),
        ("table.csv", {"test": "gone.csv"}, "no such file"),
        ("table.csv", {"test": 1.5}, "a share"),
        ("table.csv", {"text": "a", "columns": ("b",)}, "either text or columns"),
        ("reviews.csv", {"label": "kind"}, "'body' has 150 different values, too many"),
        ("some.xlsx", {}, "give a folder of images, .npz, .csv"),
        ("broken.npz", {}, "not a file of arrays"),
        ("named.npz", {}, r"holds images; write np.savez\('named.npz', x=points, y=labels\)"),
        ("holes.csv", {}, "point 1 has no label"),
        ("nowhere.csv", {}, "no dataset 'nowhere.csv'.*no such file"),
    ],
)
def test_what_is_missing_is_named(
    name: str, settings: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("table.csv"))
    texts = pd.DataFrame({"body": [f"text {i}" for i in range(200)], "kind": 0})
    texts.to_csv("reviews.csv")
    Path("some.xlsx").touch()
    Path("broken.npz").write_text("no")
    np.savez("named.npz", images=VECTORS)
    Path("holes.csv").write_text("a,label\n1,x\n2,\n")
    with pytest.raises(SpinalError, match=message):
        load_dataset(name, data=DataSettings(**settings))


def test_a_folder_may_have_the_name_of_a_dataset() -> None:
    assert Protocol("x", dataset="digits/").dataset_is_own
    assert not Protocol("x", dataset="Digits").dataset_is_own


def test_the_table_data_is_for_own_files() -> None:
    with pytest.raises(SpinalError, match=r"\[data\] is for files of your own, not digits"):
        Protocol("x", data=DataSettings())
