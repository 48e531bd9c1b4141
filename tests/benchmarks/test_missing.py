"""The parts of `benchmarks.missing` that its results depend on; without any data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not installed

from benchmarks.anywhere.sets import Points
from benchmarks.missing import CONTENDERS, CellName, make_cell, run
from benchmarks.missing_report import mean_ranks, read_cells, write_report


@pytest.fixture(scope="module")
def points() -> Points:
    """A number and a category that tell two classes apart, and a number that does not."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    x = np.stack([rng.normal(size=300) + 2 * y, (rng.random(300) < 0.1) ^ y, rng.random(300)], 1)
    names = np.array(["a", "b"])
    return Points(x[:200], y[:200], x[200:], y[200:], names, np.array([False, True, False]))


def test_values_are_removed_at_random_from_both_parts(points: Points) -> None:
    whole, cell = (make_cell(points, CellName("t", share, 150, 0)) for share in (0.0, 0.5))
    for before, after in ((whole.x, cell.x), (whole.x_test, cell.x_test)):
        assert 0.4 < after.isna().to_numpy().mean() < 0.6
        known = after.notna().to_numpy()
        assert (before.to_numpy()[known] == after.to_numpy()[known]).all()
    assert not whole.x.isna().to_numpy().any()
    np.testing.assert_array_equal(whole.y, cell.y)


def test_categories_are_columns_of_their_own(points: Points) -> None:
    cell = make_cell(points, CellName("t", 0.5, 150, 0))
    x, x_test = cell.as_numbers()
    assert x.shape == (150, 4)
    assert x_test.shape == (100, 4)
    missing = cell.x["x1"].isna().to_numpy()
    assert np.isnan(x[missing, 1:3]).all()
    assert (x[~missing, 1:3].sum(1) == 1).all()


@pytest.mark.parametrize("contender", CONTENDERS)
def test_every_contender_learns(points: Points, contender: str) -> None:
    line = run(points, CellName("t", 0.2, 100, 0), contender)
    assert line["accuracy"] > 0.75


def test_ranks_and_the_page(tmp_path: Path) -> None:
    lines = [
        {"half": "report", "table": t, "labels": 100, "missing": 0.5, "seed": 0, "contender": c,
         "accuracy": a, "nll": 1 - a, "commit": "abc"}
        for t, accuracies in (("t", (0.9, 0.8, 0.7, 0.6)), ("u", (0.5, 0.9, 0.6, 0.6)))
        for c, a in zip(CONTENDERS, accuracies, strict=True)
    ]  # fmt: skip
    lines.append(lines[0] | {"seed": 1})  # not all contenders: left out
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ranks = mean_ranks(read_cells(tmp_path)).loc[("report", 0.5)]
    assert ranks.to_dict() == {"spn": 2.5, "logistic": 1.5, "boosting": 2.75, "forest": 3.25}
    write_report(tmp_path)
    assert "2.50" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "ranks.svg").exists()
