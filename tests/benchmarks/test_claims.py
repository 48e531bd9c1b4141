"""`RESULTS.md` and other pages are what the committed runs say."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

from benchmarks import small_report
from benchmarks.claims import __main__ as claims
from benchmarks.paper_tables import PAGES, pages

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(claims.__file__).with_name("template.md")

pytestmark = pytest.mark.skipif(
    not (ROOT / "results").exists(), reason="results are in the repository only"
)


@pytest.mark.parametrize("prefix", claims.CLAIMS)
def test_every_figure_is_computed_and_used(prefix: str) -> None:
    """What the words of the template say about the figures is asserted where they are computed."""
    fields = [field for _, field, _, _ in string.Formatter().parse(TEMPLATE.read_text()) if field]
    used = {field for field in fields if field.partition("_")[0] == prefix}
    assert used == {f"{prefix}_{name}" for name in claims.CLAIMS[prefix]()}


def test_results_are_those_of_the_runs() -> None:
    assert (ROOT / "RESULTS.md").read_text(encoding="utf-8") == claims.page()


def test_the_paper_s_tables_are_beside_those_of_the_runs() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()} == pages()


def test_the_page_of_the_scale_small_is_that_of_its_runs() -> None:
    assert small_report.PAGE.read_text(encoding="utf-8") == small_report.page()
