"""Few chosen labels against all, on digits: no downloads, an SPN that is trained in a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from spinal.commands.app import app
from spinal.errors import SpinalError
from spinal.experiments import full_labels
from spinal.experiments.full_labels import EXPERIMENTS, FullLabels, pixels, run_experiment
from spinal.report.full_labels import write_full_labels_report
from tests.runs.made import made_round, write_rounds

TINY = """
title = "Tiny"
dataset = "digits"
few = 30
chosen = ["mnist", "digits"]
test = 200

[circuit.recipe]
leaves = 10
sums = [10, 10]
balance = 0
fit = { steps = 60, batch-size = 64 }
"""


def load(folder: Path, text: str = TINY) -> FullLabels:
    path = folder / "tiny.toml"
    path.write_text(text)
    return EXPERIMENTS.load(path)


def write_run(runs: Path, protocol: str, seed: int, accuracies: list[float]) -> None:
    """A run of SPN-CNN that begins with 20 labels, and has 10 more in each round."""
    folder = runs / protocol / "spn-cnn-margin" / f"seed-{seed}"
    write_rounds(folder, [made_round(i, 20 + 10 * i, a) for i, a in enumerate(accuracies)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    write_run(folder / "runs", "digits", 0, [0.5, 0.8, 0.9])
    write_run(folder / "runs", "digits", 4, [0.5, 0.7])
    write_run(folder / "runs", "mnist", 0, [0.4])  # not there yet
    run_experiment(load(folder), [0, 1], folder / "out", folder / "runs")
    return folder


def parts(made: Path, seed: int) -> list[dict[str, Any]]:
    text = (made / "out" / "tiny" / f"seed-{seed}" / "parts.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_all_labels_teach_more_than_few(made: Path) -> None:
    for seed in (0, 1):
        full, few = parts(made, seed)
        assert (full["labels"], few["labels"]) == (1297, 30)
        assert full["accuracy"] > 0.8
        assert 0.15 < few["accuracy"] < full["accuracy"] - 0.1


def test_table_has_the_mean_of_runs_with_so_many_labels(made: Path, tmp_path: Path) -> None:
    write_full_labels_report(made / "out", tmp_path / "one")
    write_full_labels_report(made / "out", tmp_path / "two")
    names = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")]
    assert {name.name for name in names} >= {"index.html", "summary.md", "accuracy.csv"}
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    shown = (tmp_path / "one" / "summary.md").read_text()
    assert "| SPN-CNN | margin | 30 | 2 | 75.00 ± 7.07 |" in shown
    assert "| its CNN | margin | 30 | 2 | 74.00 ± 7.07 |" in shown
    mean = np.mean([parts(made, seed)[0]["accuracy"] for seed in (0, 1)])
    assert f"| SPN on pixels | all | 1,297 | 2 | {100 * mean:.2f} ±" in shown


def test_finished_is_skipped_and_runs_are_made_only_if_there_are_none(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_labels, "load_dataset", None)  # whoever trains needs data
    asked = []
    monkeypatch.setattr(full_labels, "run_grid", lambda runs, **_: asked.extend(runs))
    arguments = ["full-mnist", str(made / "tiny.toml"), "--seeds", "0-1"]
    done = CliRunner(env={"COLUMNS": "160"}).invoke(
        app, [*arguments, "--out", str(made / "out"), "--runs", str(made / "runs")]
    )
    assert done.exit_code == 0, done.output
    assert "75.00 ± 7.07" in done.output
    assert not asked
    (made / "out" / "tiny" / "chosen.jsonl").rename(made / "kept")
    run_experiment(load(tmp_path), [0, 1], made / "out", tmp_path / "nothing")
    (made / "kept").rename(made / "out" / "tiny" / "chosen.jsonl")
    assert [(run.protocol.name, run.name, run.seed) for run in asked] == [
        ("digits", "spn-cnn-margin", 0),
        ("digits", "spn-cnn-margin", 1),
    ]


def test_pixels_are_read_row_by_row() -> None:
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4, 1)
    assert pixels(images)[1, 5] == pytest.approx(images[1, 1, 1, 0] / 255)
    with pytest.raises(SpinalError, match="one channel"):
        pixels(np.zeros((1, 4, 4, 3), np.uint8))


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_shipped_experiments_load(name: str) -> None:
    for scale in EXPERIMENTS.scales(name):
        assert EXPERIMENTS.load(f"{name}@{scale}").title


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fewer = 3", "did you mean 'few'"),
        ("few = 0", "few is 1 or more"),
        ('chosen = ["mnits"]', "did you mean 'mnist'"),
        ("circuit = { recipe = { leafs = 3 } }", "did you mean 'leaves'"),
    ],
)
def test_mistakes_in_a_file_are_found_before_training(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(SpinalError, match=message):
        load(tmp_path, line)
