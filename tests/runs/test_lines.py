"""Lines with checksums: any byte that changes the content is found, and named with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinal.errors import FileFormatError
from spinal.runs import read_lines, read_rounds, write_lines
from spinal.runs.metrics import pack
from spinal.runs.records import RoundRecord


def record(number: int) -> RoundRecord:
    rng = np.random.default_rng(number)
    accuracy, nll, ece = rng.random(3).tolist()
    bins = {"count": [3, 7], "right": [1, 6], "confidence": [1.25, 6.125]}
    return RoundRecord(
        round=number, labels=20 + 10 * number, class_counts=[12, 8 + 10 * number], fitted_share=1.0,
        accuracy=accuracy, nll=nll, ece=ece, reliability=bins, network_accuracy=ece,
        network_nll=accuracy, network_ece=nll, network_reliability=bins,
        shares={"spn": 0.25, "logistic": 0.75},
        right=pack(rng.random(10) < 0.5), picked={"entropy": nll}, seconds={"network": 1.5},
        picks=rng.integers(0, 1000, 10).tolist(),
    )  # fmt: skip


def test_records_survive(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    records = [record(number) for number in range(3)]
    write_lines(path, [r.to_line() for r in records])
    assert read_rounds(path) == records
    assert all("checksum" in json.loads(line) for line in path.read_text().splitlines())
    right = records[0].right_points()
    assert right is not None
    assert pack(right) == records[0].right


def test_there_may_be_no_lines(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "some.jsonl") == []
    write_lines(tmp_path / "some.jsonl", [])
    assert read_lines(tmp_path / "some.jsonl") == []


@pytest.mark.parametrize(("read", "number"), [(read_rounds, 3), (read_rounds, 1), (read_lines, 3)])
def test_any_damaged_byte_is_found(
    read: Callable[[Path], list[Any]], number: int, tmp_path: Path
) -> None:
    path = tmp_path / "rounds.jsonl"
    write_lines(path, [record(i).to_line() for i in range(number)])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.permutation(len(whole) - 1)[:600].tolist():  # all but the last line's end
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        number = whole[:at].count(b"\n") + 1
        joined = b"\n"[0] in (whole[at], damaged[at])  # two lines became one, or one two
        expected = r"line \d" if joined else f"line {number} "
        with pytest.raises(FileFormatError, match=rf"rounds\.jsonl: damaged in {expected}"):
            read(path)


def test_lost_and_repeated_lines_are_found(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    for order in ([0, 2], [0, 0, 1], [1]):
        write_lines(path, [record(i).to_line() for i in order])
        with pytest.raises(FileFormatError, match=r"rounds\.jsonl: damaged in line"):
            read_rounds(path)


def test_old_lines_without_checksums_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    old = [record(i) for i in range(2)]
    path.write_text("".join(json.dumps(r.to_line()) + "\n" for r in old))
    assert read_rounds(path) == old
    path.write_text(path.read_text() + '{"round": 2, "lab')
    with pytest.raises(FileFormatError, match="damaged in line 3 "):
        read_rounds(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": "high"}, "accuracy: not a number"),
        ({"acuracy": 0.5}, "unknown .'acuracy'."),
        ({"labels": None}, "labels: not a number"),
    ],
)
def test_lines_of_another_shape_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_lines(tmp_path / "rounds.jsonl", [record(0).to_line() | change])
    with pytest.raises(FileFormatError, match=message):
        read_rounds(tmp_path / "rounds.jsonl")


def test_committed_runs_are_read() -> None:
    results = Path(__file__).parents[2] / "results"
    paths = sorted(results.glob("**/rounds.jsonl"))[::20]
    for path in paths:
        stored = [json.loads(line) for line in path.read_text().splitlines()]
        for line in stored:
            line.pop("checksum", None)
        assert [r.to_line() for r in read_rounds(path)] == stored
