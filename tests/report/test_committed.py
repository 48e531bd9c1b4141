"""The committed reports are those of the committed runs, byte for byte."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

from spinal.report import write_report

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
REPORTS = sorted(path.parent.name for path in RESULTS.glob("*/index.html"))

CONSTRAINTS = ROOT / "constraints.txt"
DRAWN_BY = f"matplotlib=={matplotlib.__version__}\n"

pytestmark = pytest.mark.skipif(
    not CONSTRAINTS.exists() or DRAWN_BY not in CONSTRAINTS.read_text(),
    reason="results are in the repository only, and another matplotlib draws by other bytes",
)


@pytest.mark.parametrize("name", REPORTS)
def test_a_committed_report_can_be_made_again(name: str, tmp_path: Path) -> None:
    written = write_report(RESULTS / name / "runs", tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in written}
    kept = {path: RESULTS / name / path for path in made if (RESULTS / name / path).exists()}
    assert Path("index.html") in kept
    assert [str(path) for path in kept if kept[path].read_bytes() != made[path]] == []


def test_there_are_committed_reports() -> None:
    assert "methods" in REPORTS
