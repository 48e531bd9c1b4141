"""Arrays as points, and labels as numbers or names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from spinal.data import Points, as_points, from_arrays, iter_batches
from spinal.errors import DataError


def test_images_stay_uint8_and_get_a_channel() -> None:
    images = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
    points = as_points(images)
    assert isinstance(points, Points)
    assert (len(points), points.shape) == (5, (5, 4, 3, 1))
    batch = points[np.array([4, 0])]
    assert batch.dtype == np.uint8
    np.testing.assert_array_equal(batch[..., 0], images[[4, 0]])
    batch[:] = 0  # a copy: the points stay as they are
    assert images[4].any()
    assert as_points(points) is points


def test_batches_of_a_view_are_contiguous() -> None:
    view = np.arange(2 * 6 * 1 * 5, dtype=np.uint8).reshape(6, 2, 1, 5).transpose(3, 0, 1, 2)
    batch = as_points(view)[np.array([3, 1])]
    assert batch.flags.c_contiguous
    np.testing.assert_array_equal(batch, view[[3, 1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8])
def test_features_come_as_float32(dtype: type) -> None:
    points = as_points(np.arange(12).reshape(4, 3).astype(dtype))
    batch = points[np.array([2])]
    assert batch.dtype == np.float32
    np.testing.assert_array_equal(batch, [[6, 7, 8]])


def test_a_memory_map_is_read_in_batches_only(tmp_path) -> None:
    array = np.lib.format.open_memmap(
        tmp_path / "f.npy", mode="w+", shape=(100, 3), dtype=np.float64
    )
    array[:] = np.arange(300).reshape(100, 3)
    points = as_points(array)
    found = np.concatenate(list(iter_batches(points, np.arange(99, -1, -1), size=32)))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, array[::-1])


def test_arrays_in_memory_of_other_processes_are_left_alone() -> None:
    shared = memoryview(bytearray(np.arange(12, dtype=np.float32).tobytes()))
    points = as_points(np.frombuffer(shared, np.float32).reshape(4, 3))
    np.testing.assert_array_equal(points[np.array([2])], [[6, 7, 8]])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 4, 4, 3)), "give uint8"),
        (np.zeros((2, 4, 4)), "give uint8"),
        (np.zeros(3), "of shape"),
        (np.zeros((2, 2, 2, 2, 2), np.uint8), "of shape"),
        (np.zeros((0, 3)), "no points"),
        (np.array([["a"]]), "give numbers"),
        (np.zeros((2, 2), complex), "give numbers"),
    ],
)
def test_other_arrays_are_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_points(array)


@pytest.mark.parametrize("bad", [-np.inf, np.inf, 1e39])
def test_features_that_are_not_finite_are_named(bad: float) -> None:
    features = np.zeros((5, 2))
    features[3, 1] = bad
    points = as_points(features)
    assert len(points[np.array([0, 1, 2])]) == 3
    with pytest.raises(DataError, match="point 3"):
        points[np.array([4, 3])]


def test_labels_may_be_numbers_or_names() -> None:
    data = np.zeros((4, 2))
    numbers = from_arrays(data, [2, 0, -1, 2])
    assert (numbers.labels.tolist(), numbers.classes) == ([2, 0, -1, 2], ("0", "1", "2"))
    names = from_arrays(data, ["owl", "cat", "", "owl"])
    assert (names.labels.tolist(), names.classes) == ([1, 0, -1, 1], ("cat", "owl"))
    ordered = from_arrays(data, ["owl", "cat", "", "owl"], ["owl", "dog", "cat"])
    assert ordered.labels.tolist() == [0, 2, -1, 0]
    digits = from_arrays(data, ["10", "2", "2", "1"])
    assert digits.classes == ("1", "2", "10")
    nothing = from_arrays(data, classes=["a"])
    assert (nothing.labels.tolist(), nothing.classes) == ([-1] * 4, ("a",))


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([0, 1], None, "labels of shape"),
        ([0, 1, 2, 3], ["a", "b"], "2 classes"),
        ([0, 1, 0, -2], None, "from -2"),
        ([0.5, 1, 1, 1], None, "integers or names"),
        (["a", "b", "c", "a"], ["a", "b"], "unknown class 'c'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    labels: list, classes: list | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        from_arrays(np.zeros((4, 2)), labels, classes)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_mapped_file_is_read_as_it_is(tmp_path: Path, mode: str) -> None:
    array = np.arange(600, dtype=np.float32).reshape(200, 3)
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    expected = array[20:]
    if mode == "c":  # a private copy, whose changes are in no file
        mapped[:] += 1
        expected = expected + 1
    points = as_points(mapped[20:])
    for _ in range(2):
        assert np.array_equal(points[np.arange(180)], expected)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="looks into /proc")
def test_pages_of_a_mapped_file_do_not_stay_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4_000, 2_000), np.float32))
    points = as_points(np.load(path, mmap_mode="r"))
    points[np.arange(4_000)]
    areas = Path("/proc/self/smaps").read_text().split(str(path))[1:]
    resident = sum(int(re.findall(r"Rss:\s+(\d+)", area)[0]) for area in areas)  # in kB
    assert len(areas) == 1
    assert resident < 100
