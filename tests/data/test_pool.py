"""The pool's contract: what is refused, what is never asked, what indices mean."""

from __future__ import annotations

import numpy as np
import pytest

from spinal.data import Pool, make_splits
from spinal.errors import DataError, LabelError

CLASSES = ("cat", "dog", "owl")


@pytest.fixture
def pool() -> Pool:
    return Pool(np.zeros((10, 4)), CLASSES, members=[9, 1, 2, 3, 4, 5])


def test_a_new_pool_is_unlabelled(pool: Pool) -> None:
    assert len(pool) == 6
    assert pool.members.tolist() == pool.unlabelled_indices.tolist() == [1, 2, 3, 4, 5, 9]
    assert len(pool.labelled_indices) == len(pool.labels) == len(pool.asked_indices) == 0
    assert repr(pool) == "Pool(6 points: 0 labelled, 0 asked, 6 unlabelled)"
    assert Pool(np.zeros((3, 2)), 4).classes == ("0", "1", "2", "3")


def test_labels_are_kept_by_index(pool: Pool) -> None:
    pool.record([9, 2], [1, 0])
    pool.record(4, "owl")
    pool.record(np.array([], int), [])
    assert pool.labelled_indices.tolist() == [2, 4, 9]
    assert pool.labels.tolist() == [0, 2, 1]
    assert pool.unlabelled_indices.tolist() == [1, 3, 5]


def test_what_is_asked_is_not_unlabelled_until_released(pool: Pool) -> None:
    pool.mark_asked([5, 3])
    assert pool.asked_indices.tolist() == [3, 5]
    assert pool.unlabelled_indices.tolist() == [1, 2, 4, 9]
    pool.record([3], [0])
    assert pool.asked_indices.tolist() == [5]
    pool.release([5])
    assert pool.unlabelled_indices.tolist() == [1, 2, 4, 5, 9]


@pytest.mark.parametrize(
    ("indices", "labels", "message"),
    [
        ([0], [0], "no point 0 in the pool"),  # a point, but not of the pool
        ([10], [0], "no point 10"),
        ([-1], [0], "no point -1"),
        ([1, 2, 1], [0, 0, 0], "point 1 is given twice"),
        ([1], [3], "no class 3"),
        ([1], [-1], "no class -1"),
        ([1], ["cow"], "no class 'cow'"),
        ([1, 3], [0], "2 indices, but 1 labels"),
        ([1.0], [0], "integers"),
        ([True], [0], "integers"),
        ([1], [0.5], "integers"),
        ([[1]], [0], "integers"),
        ([1, 2], [0, 1], "point 2 is labelled 'cat', and now 'dog'"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_changes_nothing(
    pool: Pool, indices: list, labels: list, message: str
) -> None:
    pool.record([2], [0])
    pool.mark_asked([3])
    before = pool.state_dict()
    with pytest.raises(LabelError, match=message):
        pool.record(indices, labels)
    for key, value in pool.state_dict().items():
        np.testing.assert_array_equal(value, before[key])


def test_the_same_answer_again_is_no_contradiction_and_a_correction_is_allowed(pool: Pool) -> None:
    pool.record([2, 4], [0, 1])
    pool.record([2], [0])
    pool.record([2, 5], [2, 2], correction=True)
    assert dict(zip(pool.labelled_indices, pool.labels, strict=True)) == {2: 2, 4: 1, 5: 2}


def test_questions_that_make_no_sense_are_refused(pool: Pool) -> None:
    pool.record([2], [0])
    pool.mark_asked([3])
    with pytest.raises(LabelError, match="point 2 is already labelled"):
        pool.mark_asked([1, 2])
    with pytest.raises(LabelError, match="point 3 is already asked"):
        pool.mark_asked([3])
    with pytest.raises(LabelError, match="no point 0"):
        pool.mark_asked([0])
    with pytest.raises(LabelError, match="point 4 was not asked"):
        pool.release([3, 4])
    assert pool.asked_indices.tolist() == [3]


def test_state_goes_through_arrays(pool: Pool) -> None:
    pool.record([2, 9], [0, 2])
    pool.mark_asked([3])
    other = Pool(np.zeros((10, 4)), CLASSES)
    other.record([7], [1])
    other.load_state_dict(pool.state_dict())
    for key, value in pool.state_dict().items():
        assert isinstance(value, np.ndarray)
        np.testing.assert_array_equal(other.state_dict()[key], value)


def test_a_state_of_other_points_is_refused(pool: Pool) -> None:
    with pytest.raises(DataError, match="n_points = 10"):
        Pool(np.zeros((11, 4)), CLASSES).load_state_dict(pool.state_dict())
    with pytest.raises(DataError, match="n_classes = 3"):
        Pool(np.zeros((10, 4)), 2).load_state_dict(pool.state_dict())
    with pytest.raises(DataError, match="lacks asked_indices"):
        pool.load_state_dict(
            {key: value for key, value in pool.state_dict().items() if key != "asked_indices"}
        )


def test_members_and_classes_are_checked() -> None:
    with pytest.raises(DataError, match="member 10"):
        Pool(np.zeros((10, 4)), 2, members=[3, 10])
    with pytest.raises(DataError, match="member -1"):
        Pool(np.zeros((10, 4)), 2, members=[-1])
    with pytest.raises(DataError, match="same name"):
        Pool(np.zeros((10, 4)), ["a", "a"])


def test_a_run_begins_with_the_initial_set_labelled_and_the_pool_to_be_asked() -> None:
    labels = np.arange(100) % 3
    splits = make_splits(100, pool=60, validation=20, initial=5, seed=2)
    pool = Pool(np.zeros((100, 4)), CLASSES, members=splits.members)
    pool.record(splits.initial, labels[splits.initial])
    np.testing.assert_array_equal(pool.unlabelled_indices, splits.pool)
    np.testing.assert_array_equal(pool.labels, labels[splits.initial])
