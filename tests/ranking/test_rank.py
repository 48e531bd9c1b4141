"""`rank`: the same order as on one machine, from all files and after interruptions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from spinal.acquisition import Candidates, make_acquisition
from spinal.errors import SpinalError
from spinal.ranking import BatchScorer, choice, engines, load_model, rank
from spinal.ranking.order import chances
from tests.ranking.conftest import CLASSES, FORMATS, Example

pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")


def make_pool(folder: Path, kind: str, points: np.ndarray) -> Path:
    folder.mkdir()
    FORMATS[kind](folder, points)
    return folder


def places(table: pd.DataFrame) -> list[int]:
    """Rows of the whole pool, of three files with a third each."""
    return [
        int(str(shard)[0]) * 200 + row
        for shard, row in zip(table["shard"], table["row"], strict=True)
    ]


def best(scores: np.ndarray, seed: int = 0) -> list[int]:
    """The order by brute force: highest scores first, ties by chance."""
    numbers = chances(np.arange(len(scores)), seed).tolist()
    return sorted(range(len(scores)), key=lambda i: (-scores[i], numbers[i]))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_order_of_the_learner(
    example: Example, tmp_path: Path, kind: str
) -> None:
    pool = make_pool(tmp_path / "pool", kind, example.points)
    ids = "name" if kind == "parquet" else None
    ranking = rank(pool, example.model, tmp_path / "out.parquet", workers=1, rows_per_shard=64,
                   id_column=ids)  # fmt: skip
    table = ranking.read()
    assert (ranking.points, ranking.ranked, ranking.skipped) == (600, 600, 0)
    expected = example.scores()
    assert places(table) == best(expected)
    assert table["rank"].tolist() == list(range(1, 601))
    np.testing.assert_allclose(table["score"], expected[places(table)], atol=1e-6)
    said = example.learner.predict(example.points[places(table)])
    assert table["predicted"].tolist() == [CLASSES[i] for i in said]
    names = {"parquet": "{}-{}", "tar": "{1:04d}"}
    if kind in names:
        expected_ids = [names[kind].format(i // 200, i % 200) for i in places(table)]
        assert table["id"].tolist() == expected_ids
    assert not (tmp_path / "out.parquet.parts").exists()


def test_ties_and_workers_do_not_change_the_order(example: Example, tmp_path: Path) -> None:
    pool = make_pool(tmp_path / "pool", "npy", example.points)
    tables = [
        rank(pool, example.model, tmp_path / f"{n}.parquet", workers=n, rows_per_shard=64).read()
        for n in (1, 2)
    ]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["score"].duplicated().sum() >= 200


def test_the_best_points_are_those_that_the_learner_asks(example: Example, tmp_path: Path) -> None:
    pool = make_pool(tmp_path / "pool", "npy", example.points[:400])
    known = pd.DataFrame({"shard": "pool.npy", "row": np.arange(200, 240)})
    for path in pool.iterdir():
        path.unlink()
    np.save(pool / "pool.npy", example.points[:400])
    ranking = rank(pool, example.learner, tmp_path / "out.parquet", top=15, known=known)
    asked = example.learner.ask(60)  # ties are broken by other random numbers
    example.learner.pool.release(asked)
    first = [i for i in asked if i < 400][:15]
    assert example.scores()[ranking.read()["row"]].tolist() == example.scores()[first].tolist()


@pytest.mark.parametrize("name", ["uncertainty-herding", "auto", "k-center", "badge"])
def test_functions_that_compare_points_choose_as_on_one_machine(
    example: Example, tmp_path: Path, name: str
) -> None:
    pool = make_pool(tmp_path / "pool", "npy", example.points[:399])
    known = np.arange(10, 30)
    table = pd.DataFrame({"shard": "0.npy", "row": known})
    out = tmp_path / "out.parquet"
    ranking = rank(pool, example.model, out, acquisition=name, top=12, known=table,
                   rows_per_shard=50, workers=1)  # fmt: skip
    view = example.learner.view(example.points[:399])
    left = np.setdiff1d(np.arange(399), known)
    acquisition, posterior = make_acquisition(name), example.learner.posterior
    arrays = {"features": posterior.features(view), "log_probs": posterior.predict(view)[:, None]}
    given = {key: arrays[key][left] for key in acquisition.needs & arrays.keys()}
    if "labelled_features" in acquisition.needs:
        given["labelled_features"] = arrays["features"][known]
    candidates = Candidates(**given, ids=torch.from_numpy(left))
    picks = acquisition.select(candidates, 12, torch.Generator().manual_seed(0))
    found = ranking.read()
    rows = [int(str(s)[0]) * 133 + row for s, row in found[["shard", "row"]].to_numpy()]
    assert rows == left[picks].tolist()


def test_only_candidates_are_encoded(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(tmp_path / "pool", "parquet", example.points)
    model, seen = load_model(example.model), []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda items: seen.append(len(items)) or encode(items))
    monkeypatch.setattr(engines, "load_model", lambda place: model)
    rank(pool, example.model, tmp_path / "out.parquet", acquisition="max-herding", top=5,
         candidates=50, workers=1, column="z")  # fmt: skip
    assert sum(seen) == 50


def test_a_ranking_that_was_stopped_goes_on(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = make_pool(tmp_path / "pool", "npy", example.points), tmp_path / "out.parquet"
    real, done = engines.process, []

    def process(job: Any, shard: Any, model: Any = None) -> int:
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(shard.number)
        return real(job, shard, model)

    monkeypatch.setattr(engines, "process", process)
    with pytest.raises(KeyboardInterrupt):
        rank(pool, example.model, out, workers=1, rows_per_shard=64)
    assert not out.exists()
    first = list(done)
    done.clear()
    monkeypatch.setattr(engines, "process", lambda *a: done.append(a[1].number) or real(*a))
    table = rank(pool, example.model, out, workers=1, rows_per_shard=64).read()
    assert sorted(first + done) == list(range(12))
    assert places(table) == best(example.scores())
    monkeypatch.setattr(choice, "process_all", None)  # a third time, there is nothing to do
    pd.testing.assert_frame_equal(
        rank(pool, example.model, out, workers=1, rows_per_shard=64).read(), table
    )


def test_two_processes_do_not_make_the_same_ranking(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = make_pool(tmp_path / "pool", "npy", example.points), tmp_path / "out.parquet"
    real, said = engines.process, []

    def process(*arguments: Any) -> int:
        if not said:
            with pytest.raises(SpinalError, match="another process") as refused:
                rank(pool, example.model, out, workers=1)
            said.append(str(refused.value))
        return real(*arguments)

    monkeypatch.setattr(engines, "process", process)
    assert rank(pool, example.model, out, workers=1).ranked == 600
    assert said


def test_points_that_cannot_be_used_are_listed(example: Example, tmp_path: Path) -> None:
    points = example.points.copy()
    points[7, 2], points[250, 0] = np.inf, np.nan
    pool = make_pool(tmp_path / "pool", "npy", points)
    ranking = rank(pool, example.model, tmp_path / "out.parquet", workers=1)
    assert (ranking.ranked, ranking.skipped) == (598, 2)
    listed = pd.read_csv(tmp_path / "out.parquet.skipped.csv")
    assert listed.to_numpy().tolist() == [
        ["0.npy", 7, "a number is infinite"], ["1.npy", 50, "a number is missing"],
    ]  # fmt: skip


def test_batches_get_the_same_scores(example: Example) -> None:
    points = example.points[:50].copy()
    points[3] = np.inf
    scorer = BatchScorer(example.model, "z")
    found = scorer({"z": points, "name": np.arange(50)})
    assert np.isnan(found["score"]).nonzero()[0].tolist() == [3]
    others = np.delete(np.arange(50), 3)
    np.testing.assert_allclose(found["score"][others], example.scores()[others], atol=1e-6)
    listed = np.empty(50, object)
    listed[:] = list(points)
    np.testing.assert_array_equal(scorer({"z": listed})["score"], found["score"])
    with pytest.raises(SpinalError, match="compares points"):
        BatchScorer(example.model, "z", "k-center")({"z": points})


def refusals(example: Example, folder: Path) -> list[tuple[dict[str, Any], str]]:
    """Arguments that are wrong, and what the message says."""
    pool = make_pool(folder / "npy", "npy", example.points)
    parquet = make_pool(folder / "parquet", "parquet", example.points)
    texts, wide, mixed, empty = (folder / name for name in ("texts", "wide", "mixed", "empty"))
    for each in (texts, wide, mixed, empty):
        each.mkdir()
    pd.DataFrame({"body": ["a", "b"]}).to_parquet(texts / "t.parquet")
    np.save(wide / "w.npy", np.zeros((4, 9), np.float32))
    np.save(mixed / "w.npy", np.zeros((4, 6), np.float32))
    (mixed / "w.tar").write_bytes(b"")
    damaged, ragged, two = folder / "d.parquet", folder / "r.parquet", folder / "two.parquet"
    damaged.write_bytes(b"PAR1")
    pd.DataFrame({"z": [[1.0, 2.0], [1.0]]}).to_parquet(ragged)
    pd.DataFrame({"a": ["x"], "b": ["y"]}).to_parquet(two)
    (folder / "d.tar").write_bytes(b"no tar")
    other = folder / "other.parquet"
    rank(pool, example.model, other, top=3, workers=1)
    bad = pd.DataFrame({"shard": ["9.npy"], "row": [0]})
    return [
        ({"pool": folder / "nowhere"}, "no such file or folder"),
        ({"pool": empty}, "no .parquet, .npy"),
        ({"pool": mixed}, ".npy and .tar files; give one kind"),
        ({"pool": wide}, r"w.npy: points of shape \(9,\); the learner was trained on \(6,\)"),
        ({"pool": texts}, "t.parquet: a saved learner ranks vectors"),
        ({"pool": damaged}, "not a Parquet file, or damaged"),
        ({"pool": folder / "d.tar"}, "not a tar file, or damaged"),
        ({"pool": ragged}, "differ in length"),
        ({"pool": two}, "Choose one with --column: a, b"),
        ({"pool": parquet, "column": "zz"}, "no column 'zz'; there are z, name"),
        ({"pool": parquet}, "which column holds the points"),
        ({"model": folder / "none"}, "no such model"),
        ({"acquisition": "auto"}, "say how many to choose"),
        ({"acquisition": "bald", "top": 3}, "compares samples"),
        ({"engine": "slurm"}, "no engine 'slurm'"),
        ({"address": "10.0.0.1:6379"}, "an address is for --engine ray"),
        ({"known": bad}, "the pool has no row 0 of 9.npy"),
        ({"known": pd.DataFrame({"a": [1]})}, "has no column 'row'"),
        ({"out": other}, "another ranking"),
        ({"out": pool / "0.npy"}, "is a file of the pool"),
    ]


def test_what_is_wrong_is_said(example: Example, tmp_path: Path) -> None:
    for i, (wrong, message) in enumerate(refusals(example, tmp_path)):
        right = {"pool": tmp_path / "npy", "model": example.model, "out": tmp_path / f"{i}.parquet"}
        with pytest.raises(SpinalError, match=message):
            rank(**{"workers": 1, **right, **wrong})


def test_pyarrow_that_is_missing_is_named(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SpinalError, match=r"pip install 'spinal\[parquet\]'"):
        rank(tmp_path, example.model, tmp_path / "out.parquet")
