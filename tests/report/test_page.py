"""A whole report of made-up runs: its numbers computed again; the same files when made again."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spinal.data import Splits
from spinal.errors import FileFormatError
from spinal.experiments import Protocol
from spinal.report import write_report
from spinal.report.paper import accuracies
from spinal.runs import read_lines, write_lines
from tests.report.made import write_run, write_runs

PROTOCOL = Protocol("tiny", "Tiny & small", initial=80, batch=20, rounds=3, test=300, paper="mnist")
SPN, RANDOM = "spn-cnn-max-entropy", "random"
SKILLS = {SPN: 0.75, "deterministic-margin": 0.6, RANDOM: 0.55}
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_runs(tmp_path_factory.mktemp("runs"), PROTOCOL, SKILLS, SEEDS)
    write_run(folder, PROTOCOL, RANDOM, 3, 5.0, rounds=1)  # still running, and far too good
    return folder


@pytest.fixture(scope="module")
def report(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(runs, out)
    return out


def lines(runs: Path, method: str, seed: int) -> list[dict[str, Any]]:
    path = runs / "tiny" / method / f"seed-{seed}" / "rounds.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def curve(runs: Path, method: str, seed: int) -> np.ndarray:
    return np.array([line["accuracy"] for line in lines(runs, method, seed)])


def bits(runs: Path, method: str, seed: int, number: int) -> np.ndarray:
    packed = base64.b64decode(lines(runs, method, seed)[number]["right"])
    return np.array([byte >> i & 1 for byte in packed for i in range(7, -1, -1)][:300])


def part(report: Path, name: str, **where: Any) -> pd.Series:
    table = pd.read_csv(report / "tiny" / f"{name}.csv")
    for column, value in where.items():
        table = table[table[column].astype(str) == str(value)]
    assert len(table) == 1
    return table.iloc[0]


def test_areas_and_gains(runs: Path, report: Path) -> None:
    def area(method: str, seed: int) -> float:
        a = curve(runs, method, seed)
        return float(a[0] / 2 + a[1] + a[2] + a[3] / 2) / 3

    gains = np.array([area(SPN, s) - area(RANDOM, s) for s in SEEDS])
    row = part(report, "areas", method=SPN)
    assert row["area"] == pytest.approx(np.mean([area(SPN, s) for s in SEEDS]), rel=1e-5)
    assert row["area_gain"] == pytest.approx(gains.mean(), rel=1e-5)
    interval = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    assert (row["area_low"], row["area_high"]) == pytest.approx(tuple(interval), rel=1e-4)
    summary = pd.read_csv(report / "summary.csv").set_index("method").loc[SPN]
    assert (summary["gain_low"], summary["gain_high"]) == (row["area_low"], row["area_high"])
    assert (summary["area"], summary["gain"]) == (row["area"], row["area_gain"])
    final = np.array([curve(runs, SPN, s)[-1] - curve(runs, RANDOM, s)[-1] for s in SEEDS])
    assert row["final_gain"] == pytest.approx(final.mean(), rel=1e-5)
    test = part(report, "area-tests", method=SPN, competitor=RANDOM)
    assert test["p_value"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue, rel=1e-4)
    assert test["holm"] == test["p_value"]  # one test of this comparison
    assert test["p_value"] <= test["holm_all"] <= 2 * test["p_value"]


def test_by_the_network(runs: Path, report: Path) -> None:
    def area(method: str, seed: int) -> float:
        a = [line["network_accuracy"] for line in lines(runs, method, seed)]
        return float(a[0] / 2 + a[1] + a[2] + a[3] / 2) / 3

    gains = np.array([area(SPN, s) - area(RANDOM, s) for s in SEEDS])
    row = part(report, "network-areas", method=SPN)
    assert row["area_gain"] == pytest.approx(gains.mean(), rel=1e-5)
    test = part(report, "network-area-tests", method=SPN, competitor=RANDOM)
    assert test["p_value"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue, rel=1e-4)
    assert row["area"] < part(report, "areas", method=SPN)["area"]
    assert (report / "tiny" / "network-curves.svg").exists()
    page = (report / "index.html").read_text()
    assert "Tiny &amp; small, by the network" in page
    assert "<h3>By the network</h3>" in page


@pytest.mark.parametrize("field", ["accuracy", "network_accuracy"])
def test_tests_from_accuracies_alone(field: str, runs: Path, report: Path) -> None:
    name = "accuracy-tests" if field == "accuracy" else "network-accuracy-tests"
    for number, labels in enumerate((80, 100, 120, 140)):
        one, other = (
            np.mean([lines(runs, method, s)[number][field] for s in SEEDS])
            for method in (SPN, RANDOM)
        )
        z = (one - other) / np.sqrt((one * (1 - one) + other * (1 - other)) / 300)
        row = part(report, name, method=SPN, competitor=RANDOM, labels=labels)
        assert row["p_value"] == pytest.approx(stats.norm.sf(z), rel=1e-4)
        assert row["p_value"] <= row["holm"] <= row["holm_all"]


def test_the_paper_stands_beside(runs: Path, report: Path) -> None:
    printed = accuracies()
    theirs = printed[(printed["table"] == "mnist") & (printed["labels"] == 100)]
    for method in (SPN, RANDOM):
        row = part(report, "paper", method=method)
        ours = np.mean([curve(runs, method, s)[1] for s in SEEDS])
        assert row["labels"] == 100
        assert row["accuracy"] == pytest.approx(ours, rel=1e-5)
        paper = theirs[theirs["method"] == method]["accuracy"].item()
        assert row["difference"] == pytest.approx(ours - paper, rel=1e-4)
        network = np.mean([lines(runs, method, s)[1]["network_accuracy"] for s in SEEDS])
        assert row["network_difference"] == pytest.approx(network - paper, rel=1e-4)


def test_tests_over_points(runs: Path, report: Path) -> None:
    differences, points = [], []
    for seed in SEEDS:
        one, other = bits(runs, SPN, seed, 1), bits(runs, RANDOM, seed, 1)
        differences.append(one - other)
        points.append(Splits.load(runs / "tiny" / "splits" / f"seed-{seed}.json").test)
        z = (one - other).mean() * np.sqrt(300) / (one - other).std()
        where = {"method": SPN, "competitor": RANDOM, "labels": 100, "initial_set": seed}
        p = part(report, "z-tests", **where)["p_value"]
        assert p == pytest.approx(stats.norm.sf(z), rel=1e-4)
    together = pd.Series(np.concatenate(differences)).groupby(np.concatenate(points))
    mean = np.concatenate(differences).mean()
    z = together.sum().sum() / np.sqrt(((together.sum() - together.count() * mean) ** 2).sum())
    row = part(report, "z-tests", method=SPN, competitor=RANDOM, labels=100, initial_set="mean")
    assert row["p_value"] == pytest.approx(stats.norm.sf(z), rel=1e-4)
    one, other = bits(runs, SPN, 2, 3), bits(runs, RANDOM, 2, 3)
    row = part(report, "mcnemar", method=SPN, competitor=RANDOM, seed=2)
    only_one, only_other = int((one > other).sum()), int((other > one).sum())
    assert (row["only_method_right"], row["only_competitor_right"]) == (only_one, only_other)
    exact = stats.binomtest(only_one, only_one + only_other).pvalue
    assert row["p_value"] == pytest.approx(exact, rel=1e-4)


def test_penalties(runs: Path, report: Path) -> None:
    table = pd.read_csv(report / "overall" / "penalties.csv").set_index("method")
    for first in SKILLS:
        for second in SKILLS:
            wins = 0
            for i in range(4):
                d = [curve(runs, first, s)[i] - curve(runs, second, s)[i] for s in SEEDS]
                wins += first != second and np.mean(d) > 0 and stats.ttest_1samp(d, 0).pvalue < 0.05
            assert table.loc[first, second] == pytest.approx(wins / 4)
    assert table.loc[SPN, RANDOM] > 0


def test_labels_needed_and_saved(runs: Path, report: Path) -> None:
    means = {m: np.mean([curve(runs, m, s) for s in SEEDS], axis=0) for m in (SPN, RANDOM)}
    table = pd.read_csv(report / "tiny" / "labels-needed.csv")
    target = means[RANDOM][-1]
    rows = table[np.isclose(table["accuracy"], target, rtol=1e-5)].set_index("method")
    fine = np.linspace(80, 140, 60_001)
    reached = {m: fine[np.interp(fine, [80, 100, 120, 140], a) >= target][0]
               for m, a in means.items()}  # fmt: skip
    assert rows.loc[SPN, "labels"] == pytest.approx(reached[SPN], abs=0.01)
    assert rows.loc[SPN, "saved"] == pytest.approx(reached[RANDOM] - reached[SPN], abs=0.01)


def test_what_another_batch_would_change(report: Path) -> None:
    table = pd.read_csv(report / "tiny" / "more-labels.csv").set_index("method")
    assert list(table.index) == list(pd.read_csv(report / "tiny" / "areas.csv")["method"])
    for method, skill in SKILLS.items():
        row = table.loc[method]
        assert (row["seeds"], row["more"]) == (len(SEEDS), 20)
        assert row["changes"] == pytest.approx(skill / 140, rel=1e-4)
        assert row["high"] == pytest.approx(4 * row["low"], rel=1e-4)
    assert "What another batch would change" in (report / "index.html").read_text()


def test_time_and_classes(runs: Path, report: Path) -> None:
    row = part(report, "run-time", method=SPN)
    assert row["seconds"] == pytest.approx(4 * (2 + 0.5 + 0.75 + 0.25))
    assert row["ratio"] == pytest.approx(3.5 / 3.3, rel=1e-5)
    assert row["paper_ratio"] == pytest.approx(5321 / 1527, rel=1e-5)
    counts = np.mean([lines(runs, SPN, s)[-1]["class_counts"] for s in SEEDS], axis=0)
    table = pd.read_csv(report / "tiny" / "classes.csv")
    found = table[table["method"] == SPN]["mean_count"]
    assert found.tolist() == pytest.approx(counts.tolist(), rel=1e-5)


class _Page(HTMLParser):
    """Notes what a page loads from elsewhere, its ids, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value is not None:
                self.links.append(value)
            if name == "id" and value is not None:
                self.ids.append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_else(report: Path) -> None:
    text = (report / "index.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert "Tiny & small" in page.text
    assert "Random, seed 3 (100)" in page.text  # what was left out is named
    for heading in (
        "Accuracy",
        "Significance tests",
        "Time",
        "Calibration",
        "Commands and versions",
    ):
        assert f"<h3>{heading}</h3>" in text
    assert (report / "tiny" / "asked-first.svg").exists()


def test_two_renderings_are_equal(runs: Path, report: Path, tmp_path: Path) -> None:
    written = write_report(runs, tmp_path)
    again = {path.relative_to(tmp_path) for path in written}
    assert again == {p.relative_to(report) for p in report.glob("**/*") if p.is_file()}
    for name in sorted(again):
        assert (tmp_path / name).read_bytes() == (report / name).read_bytes(), name


def test_networks_that_did_not_learn_their_labels_are_named(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    for path in (tmp_path / "runs" / "tiny" / SPN).glob("*/rounds.jsonl"):
        found = read_lines(path)
        found[1]["fitted_share"] = 0.4
        write_lines(path, found)
    write_report(tmp_path / "runs", tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Fitted in the worst round: SPN-CNN, max entropy (40 %)." in text


def test_runs_that_kept_no_images_have_no_contact_sheet(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    for path in tmp_path.glob("**/asked.npz"):
        path.unlink()
    write_report(tmp_path / "runs", tmp_path / "out")
    assert (tmp_path / "out" / "tiny" / "class-balance.svg").exists()
    assert not (tmp_path / "out" / "tiny" / "asked-first.svg").exists()


def _cut(content: bytes) -> bytes:
    return content[:100]


def _emptied(content: bytes) -> bytes:
    return b""


def _flipped(content: bytes) -> bytes:
    middle = content.index(b"labels.npy") // 2  # among the images
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [_cut, _emptied, _flipped])
def test_damaged_images_are_named(
    runs: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    for path in tmp_path.glob("**/asked.npz"):
        path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileFormatError, match=r"asked\.npz: damaged"):
        write_report(tmp_path / "runs", tmp_path / "out")
