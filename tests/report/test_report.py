"""The report: areas and intervals against hand-computed values, files that do not change."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spinal.errors import SpinalError
from spinal.report import read_runs, summary_of, write_report
from spinal.report.read import area_under_curve, stored_runs
from spinal.report.tables import to_markdown
from tests.runs.made import made_round, write_rounds


def write_run(folder: Path, method: str, seed: int, accuracies: list[float]) -> None:
    seconds = {"network": 2.0, "scoring": 1.0}
    rounds = [
        made_round(i, 20 + 10 * i, a, seconds=seconds, picks=[1, 2])
        for i, a in enumerate(accuracies)
    ]
    write_rounds(folder / "tiny" / method / f"seed-{seed}", rounds)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for seed, gain in enumerate((0.02, 0.06, 0.04)):
        base = np.array([0.5, 0.6, 0.7])
        write_run(folder, "random", seed, base.tolist())
        write_run(folder, "spn-cnn-max-entropy", seed, (base + gain).tolist())
    return folder


def test_area_is_the_mean_over_the_budget() -> None:
    assert area_under_curve(np.array([20, 30, 50]), np.array([0.5, 0.6, 0.6])) == pytest.approx(
        (0.55 * 10 + 0.6 * 20) / 30
    )
    assert area_under_curve(np.array([20]), np.array([0.4])) == 0.4


def test_gains_are_paired_with_student_s_interval(runs: Path) -> None:
    summary = summary_of(runs).set_index("method")
    row = summary.loc["spn-cnn-max-entropy"]
    assert row["area"] == pytest.approx(0.64)
    assert row["gain"] == pytest.approx(0.04)
    low, high = stats.ttest_rel([0.62, 0.66, 0.64], [0.6, 0.6, 0.6]).confidence_interval(0.95)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((low, high))
    assert row["seconds_a_round"] == pytest.approx(3.0)
    assert np.isnan(summary.loc["random", "gain"])


def test_runs_without_a_common_number_of_labels_are_named(runs: Path) -> None:
    rounds = [made_round(i, 25 + 10 * i, 0.5) for i in range(3)]
    write_rounds(runs / "tiny" / "badge" / "seed-0", rounds)
    with pytest.raises(SpinalError, match=r"badge, .* no number of labels in common"):
        summary_of(runs)


def test_copies_of_seeds_are_left_out(runs: Path) -> None:
    shutil.copytree(runs / "tiny" / "random" / "seed-0", runs / "tiny" / "random" / "seed-0-old")
    assert {run.seed for run in stored_runs(runs)} == {0, 1, 2}


def test_shares_of_classifiers_are_means_at_the_last_budget(tmp_path: Path) -> None:
    for seed, share in enumerate((0.5, 0.7)):
        rounds = [
            made_round(i, 20 + 10 * i, 0.6, shares={"spn": spn, "logistic": 1 - spn})
            for i, spn in enumerate((0.1, share))
        ]
        write_rounds(tmp_path / "runs" / "tiny" / "spn-cnn" / f"seed-{seed}", rounds)
        write_run(tmp_path / "runs", "random", seed, [0.5, 0.6])
    write_report(tmp_path / "runs", tmp_path / "out")
    (path,) = (tmp_path / "out").rglob("*shares.csv")
    table = pd.read_csv(path)
    assert table.to_dict("records") == [{"method": "spn-cnn", "spn": 0.6, "logistic": 0.4}]
    assert "logistic regression" in path.with_suffix(".md").read_text()


def test_logistic_regression_stands_beside_every_method(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((0.7, 0.8)):
        rounds = [made_round(i, 20 + 10 * i, 0.6, logistic_accuracy=accuracy) for i in range(2)]
        write_rounds(tmp_path / "runs" / "tiny" / "random" / f"seed-{seed}", rounds)
    write_report(tmp_path / "runs", tmp_path / "out")
    (path,) = (tmp_path / "out").rglob("*predictors.csv")
    assert pd.read_csv(path)["logistic_accuracy"].tolist() == pytest.approx([0.75])
    assert "of logistic regression" in to_markdown(summary_of(tmp_path / "runs"))


def test_the_table_is_for_people(runs: Path) -> None:
    text = to_markdown(summary_of(runs))
    assert "| tiny | spn-cnn-max-entropy | 3 | 64.00 | +4.00 (-0.97 to +8.97) |" in text


def test_runs_without_settings_and_bins_are_reported(runs: Path, tmp_path: Path) -> None:
    written = [path.relative_to(tmp_path) for path in write_report(runs, tmp_path / "out")]
    names = [path.name for path in written if path.parent.name == "out"]
    assert names == [
        "index.html",
        "tiny.png",
        "tiny.svg",
        "summary.csv",
        "summary.md",
        "rounds.csv",
    ]
    assert len(pd.read_csv(tmp_path / "out" / "rounds.csv")) == 18
    parts = {path.stem for path in written if path.parent.name == "tiny"}
    assert {"curves", "areas", "run-time", "calibration", "runs"} <= parts
    assert not parts & {"z-tests", "mcnemar", "reliability", "class-balance", "asked-first"}


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    for method, accuracy in (("random", 0.5), ("deterministic-max-entropy", 0.6)):
        write_run(tmp_path, method, 0, [accuracy, accuracy])
    text = to_markdown(summary_of(tmp_path))
    assert "| +10.00 | 60.00 at 30 |" in text


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpinalError, match="no runs in it"):
        read_runs(tmp_path)
