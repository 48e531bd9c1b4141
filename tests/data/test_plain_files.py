"""Pickles and MATLAB files by readers of our own, against pickle and SciPy; and damage to them."""

from __future__ import annotations

import io
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from spinal.data.matlab import read_matlab
from spinal.data.pickles import load_plain_pickle
from spinal.errors import FileFormatError

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")


def same(one: Any, two: Any) -> bool:
    if isinstance(two, np.ndarray):
        is_same = isinstance(one, np.ndarray) and one.dtype == two.dtype
        return is_same and one.shape == two.shape and bool((one == two).all())
    if isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in two)
    if isinstance(two, list | tuple):
        pairs = zip(one, two, strict=True)
        return type(one) is type(two) and all(same(a, b) for a, b in pairs)
    return type(one) is type(two) and one == two


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_pickles_are_read_as_they_were_written(protocol: int) -> None:
    rng = np.random.default_rng(0)
    shared = [1, "twice"]
    data = {
        "numbers": [0, 1, -1, 255, 256, 70_000, -(2**40), 2**70, 0.5, float("inf"), True, None],
        b"bytes": (b"", b"\xff\0", "caf\xe9", "", (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "nested": {"a": [{}, [], {"b": shared}], "b": shared},
        "big": list(range(3000)),
        "arrays": [rng.integers(0, 100, (2, 3, 4)).astype(kind) for kind in TYPES],
        "others": [
            np.asfortranarray(rng.normal(size=(3, 2))), np.arange(5, dtype=">i4"), np.empty((0, 3)),
            np.array([True, False]),
        ],
    }  # fmt: skip
    content = pickle.dumps(data, protocol)
    assert same(load_plain_pickle(content, "file"), data)


@pytest.mark.parametrize("compressed", [True, False])
def test_matlab_files_are_read_as_by_scipy(tmp_path: Path, compressed: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = {f"x{kind}": rng.integers(0, 90, (4, 3, 2)).astype(kind) for kind in TYPES}
    arrays |= {"y": np.arange(9.0)[:, None], "small": np.uint8([[1, 2]]), "e": np.empty((0, 0))}
    others = {"text": "abc", "cell": np.array([[1], "a"], object), "z": np.array([1j])}
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, arrays | others, do_compression=compressed)
    content = np.frombuffer(file.read_bytes(), np.uint8)
    found = read_matlab(content, tuple(arrays), file)
    expected = scipy.io.loadmat(file)
    assert found.keys() == arrays.keys()
    assert all(same(found[name], expected[name]) for name in arrays)
    assert read_matlab(content, ("nothing",), file) == {}
    for name in others:
        with pytest.raises(FileFormatError, match=rf"{name} is no array of real numbers"):
            read_matlab(content, (name,), file)


def damaged(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 4))):
        at = rng.randrange(len(data))
        data[at : at + rng.choice((0, 1, 4))] = rng.choice((b"\xff" * 4, b"\0", rng.randbytes(3)))
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of escapes in damaged texts
def test_damage_is_refused_or_harmless() -> None:
    """Where pickle and SciPy crash the interpreter, or ask for all memory."""
    rng = random.Random(0)
    labels = np.arange(20, dtype=np.uint8)
    pickles = [pickle.dumps({"data": labels, "labels": [1, 2]}, p) for p in range(6)]
    matlab = []
    for compressed in (True, False):
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, {"X": labels.reshape(5, 4)}, do_compression=compressed)
        matlab.append(buffer.getvalue())
    refused = 0
    for case in range(4000):
        try:
            if case % 2:
                load_plain_pickle(damaged(rng.choice(pickles), rng), "file")
            else:
                content = np.frombuffer(damaged(rng.choice(matlab), rng), np.uint8)
                read_matlab(content, ("X",), "file")
        except FileFormatError:
            refused += 1
    assert refused > 1500
