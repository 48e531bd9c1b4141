"""Splits: the paper's sizes, disjoint, and the same for ever."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spinal.data import Splits, load_dataset, make_splits
from spinal.errors import DataError, FileFormatError

PARTS = ("pool", "validation", "initial", "test")
PAPER = {
    "mnist": (60_000, 10_000, 40_000, 5_000, 20),
    "fashion-mnist": (60_000, 10_000, 40_000, 5_000, 1_000),
    "cifar-10": (50_000, 10_000, 30_000, 5_000, 5_000),
    "svhn": (73_257, 26_032, 63_257, 5_000, 1_000),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_sizes_are_kept_and_disjoint(name: str) -> None:
    n_train, n_test, pool, validation, initial = PAPER[name]
    splits = make_splits(n_train, n_test, pool=pool, validation=validation, initial=initial, seed=1)
    assert [len(getattr(splits, part)) for part in PARTS] == [pool, validation, initial, n_test]
    used = np.concatenate([splits.pool, splits.validation, splits.initial])
    assert len(np.unique(used)) == len(used)
    assert used.max() < n_train
    np.testing.assert_array_equal(splits.test, np.arange(n_test))
    assert set(splits.members) == set(splits.pool) | set(splits.initial)


def test_a_seed_means_the_same_split_for_ever() -> None:
    splits = make_splits(20, 10, pool=8, validation=4, initial=3, test=4, seed=7)
    # Recorded: results on disk stand on these.
    assert splits.pool.tolist() == [1, 5, 6, 8, 9, 10, 12, 19]
    assert splits.validation.tolist() == [2, 14, 15, 17]
    assert splits.initial.tolist() == [4, 16, 18]
    assert splits.test.tolist() == [1, 3, 4, 9]


def test_seeds_differ_and_repeat() -> None:
    first, again, other = (make_splits(1_000, 100, test=50, seed=s, cap=True) for s in (0, 0, 1))
    for part in PARTS:
        np.testing.assert_array_equal(getattr(first, part), getattr(again, part))
        assert not np.array_equal(getattr(first, part), getattr(other, part))


def test_every_point_is_as_likely_as_another_in_every_part() -> None:
    counts = {part: np.zeros(30) for part in PARTS}
    for seed in range(2_000):
        splits = make_splits(30, 30, pool=15, validation=6, initial=6, test=10, seed=seed)
        for part in PARTS:
            counts[part][getattr(splits, part)] += 1
    for part, share in zip(PARTS, (15 / 30, 6 / 30, 6 / 30, 10 / 30), strict=True):
        deviation = np.sqrt(2_000 * share * (1 - share))
        assert np.abs(counts[part] - 2_000 * share).max() < 4.5 * deviation


def test_the_test_part_does_not_depend_on_the_other_sizes() -> None:
    one = make_splits(100, 50, pool=60, validation=10, initial=5, test=20, seed=3)
    two = make_splits(90, 50, pool=20, validation=20, initial=2, test=20, seed=3)
    np.testing.assert_array_equal(one.test, two.test)


def test_an_open_pool_takes_what_is_left() -> None:
    splits = make_splits(100, pool=None, validation=10, initial=5)
    assert len(splits.pool) == 85


@pytest.mark.parametrize("pool", [None, 10])
def test_a_stratified_initial_set_has_classes_in_equal_numbers(pool: int | None) -> None:
    labels = np.repeat([0, 1, 2, 3], [60, 20, 10, 10])
    splits = make_splits(
        100, pool=pool, validation=10, initial=8, stratified=True, labels=labels, seed=5
    )
    np.testing.assert_array_equal(np.bincount(labels[splits.initial]), [2, 2, 2, 2])
    with pytest.raises(DataError, match="needs the labels"):
        make_splits(100, validation=10, stratified=True)


def test_too_few_points_are_an_error_or_a_smaller_pool() -> None:
    n = len(load_dataset("digits").train_labels)
    with pytest.raises(DataError, match="are 45020, but there are 1297"):
        make_splits(n, pool=40_000, validation=5_000, initial=20)
    capped = make_splits(n, pool=40_000, validation=5_000, initial=20, cap=True)
    assert [len(getattr(capped, part)) for part in PARTS[:3]] == [1135, 141, 20]
    opened = make_splits(n, validation=5_000, initial=20, cap=True)
    assert [len(getattr(opened, part)) for part in PARTS[:3]] == [1136, 141, 20]
    fitting = make_splits(n, pool=1_000, validation=100, initial=20, cap=True)
    assert [len(getattr(fitting, part)) for part in PARTS[:3]] == [1000, 100, 20]


@pytest.mark.parametrize(
    "sizes", [{"initial": 11}, {"pool": -1}, {"validation": -5}, {"test": 5}, {"initial": -1}]
)
def test_impossible_sizes_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(DataError):
        make_splits(10, 4, **{"validation": 0, "initial": 0, **sizes})


def test_splits_are_saved_and_loaded(tmp_path: Path) -> None:
    splits = make_splits(200, 50, pool=100, validation=50, initial=5, test=20, seed=9)
    splits.save(tmp_path / "splits.json")
    loaded = Splits.load(tmp_path / "splits.json")
    assert (loaded.seed, loaded.n_train, loaded.n_test) == (9, 200, 50)
    for part in PARTS:
        assert getattr(loaded, part).dtype == np.int64
        np.testing.assert_array_equal(getattr(loaded, part), getattr(splits, part))
    assert [p.name for p in tmp_path.iterdir()] == ["splits.json"]


def test_a_file_that_is_not_splits_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    with pytest.raises(DataError, match=r"splits\.json"):
        Splits.load(path)
    make_splits(20, validation=5, initial=5).save(path)
    whole = path.read_text()
    content = json.loads(whole)
    for bad in (
        whole[:-5],
        "[]",
        "{}",
        json.dumps({**content, "pool": [1, 1]}),
        json.dumps({**content, "pool": [20]}),
        json.dumps({**content, "pool": ["a"]}),
        json.dumps({**content, "more": 1}),
    ):
        path.write_text(bad)
        with pytest.raises(FileFormatError, match=r"splits\.json"):
            Splits.load(path)
