"""Files of results that grow."""

from __future__ import annotations

from pathlib import Path

from benchmarks.anywhere.sets import read_suite
from benchmarks.results import Results


def test_what_was_measured_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    results = Results(path, ("set", "seed"))
    assert {"set": "iris", "seed": 0} not in results
    results.add({"set": "iris", "seed": 0, "answers": n} for n in (10, 20))
    for found in (results, Results(path, ("set", "seed"))):
        assert {"set": "iris", "seed": 0} in found
        assert {"set": "iris", "seed": 1} not in found
        assert [line["answers"] for line in found.lines] == [10, 20]


def test_the_suite_is_chosen_from_by_half_name_and_features() -> None:
    everything = list(read_suite())
    halves = [list(read_suite(half)) for half in ("develop", "report")]
    assert sorted(e.full for half in halves for e in half) == sorted(e.full for e in everything)
    assert [e.full for e in read_suite("develop", ["iris", "newsgroups--sentences"])] == [
        "newsgroups--sentences",
        "iris--table",
    ]
    assert {e.features for e in read_suite(features=("table",))} == {"table"}
