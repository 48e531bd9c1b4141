"""The committed reports are those of the committed results, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest

from spinal.report import write_report
from spinal.report.full_labels import write_full_labels_report
from spinal.report.uncertainty import write_uncertainty_report

Writer = Callable[[Path, Path], list[Path]]

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
#: Where the results are, where their report is, and what writes it.
REPORTS: dict[str, tuple[str, str, Writer]] = {
    "digits": ("digits/runs", "digits", write_report),
    "vgg-five-seeds": ("vgg-five-seeds/runs", "vgg-five-seeds", write_report),
    "uncertainty-alone": (
        "uncertainty-alone", "uncertainty-alone/report", write_uncertainty_report
    ),
    "full-mnist": ("full-mnist", "full-mnist/report", write_full_labels_report),
}  # fmt: skip
CONSTRAINTS = ROOT / "constraints.txt"
DRAWN_BY = f"matplotlib=={matplotlib.__version__}\n"


@pytest.mark.long
@pytest.mark.skipif(
    not CONSTRAINTS.exists() or DRAWN_BY not in CONSTRAINTS.read_text(),
    reason="results are in the repository only, and another matplotlib draws by other bytes",
)
@pytest.mark.parametrize("name", REPORTS)
def test_a_committed_report_can_be_made_again(name: str, tmp_path: Path) -> None:
    results, report, write = REPORTS[name]
    made = {path.relative_to(tmp_path): path for path in write(RESULTS / results, tmp_path)}
    kept = {path: RESULTS / report / path for path in made if (RESULTS / report / path).exists()}
    assert Path("index.html") in kept
    assert [str(p) for p in kept if kept[p].read_bytes() != made[p].read_bytes()] == []
