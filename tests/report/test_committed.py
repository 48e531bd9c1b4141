"""The committed reports are those of the committed runs, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.report import write_report

RESULTS = Path(__file__).parents[2] / "results"
REPORTS = sorted(path.parent.name for path in RESULTS.glob("*/index.html"))


@pytest.mark.parametrize("name", REPORTS)
def test_a_committed_report_can_be_made_again(name: str, tmp_path: Path) -> None:
    written = write_report(RESULTS / name / "runs", tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in written}
    kept = {path: RESULTS / name / path for path in made if (RESULTS / name / path).exists()}
    assert Path("index.html") in kept
    assert [str(path) for path in kept if kept[path].read_bytes() != made[path]] == []


def test_there_are_committed_reports() -> None:
    assert "methods" in REPORTS
