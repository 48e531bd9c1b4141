"""The page with a screen reader and by keyboard alone: axe-core finds nothing, and no key is lost.

axe-core is fetched by npm, unless ``SPINAL_AXE`` names a copy of its ``axe.min.js``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.project import Project
from tests.browser.conftest import SEEN

pytestmark = pytest.mark.slow

AXE = "axe-core@4.14.0"
VIEWS = ("label", "guesses", "mistakes", "outliers", "disagreements", "browse", "dashboard",
         "export")  # fmt: skip
#: Rules of WCAG 2.2, levels A and AA, and what axe recommends beside.
RUN = """async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
    "wcag22aa", "best-practice"], resultTypes: ["violations"]})).violations.map((found) =>
    `${found.impact} ${found.id}: ${found.nodes.slice(0, 3).map((node) =>
        node.html.slice(0, 120) + " " + node.any.map((any) => any.message).join("; ").slice(0, 160))
        .join(" | ")}`)"""
#: What is in focus, for a person to read.
FOCUSED = """() => {
    const node = document.activeElement;
    return node === document.body ? "" : (node.id ? `#${node.id}` : node.tagName.toLowerCase())
        + " " + (node.getAttribute("aria-label") ?? node.textContent).trim().slice(0, 40);
}"""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    if given := os.environ.get("SPINAL_AXE"):
        return Path(given).read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("there is no npm to fetch axe-core with")
    done = subprocess.run(
        ["npm", "pack", AXE, "--pack-destination", str(folder)], cwd=folder, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"axe-core cannot be fetched: {done.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def serious(page: Any, where: str) -> list[str]:
    """What axe finds that keeps people out, or makes it hard for them."""
    page.wait_for_function(SEEN)
    findings = page.evaluate(RUN)
    return [f"{where}: {text}" for text in findings if not text.startswith(("minor", "moderate"))]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    project: Project,
    serve: Callable[..., str],
    open_page: Callable[..., Any],
    axe: str,
    width: int,
    scheme: str,
) -> None:
    page = open_page(serve(project), width, 844 if width < 400 else 800, color_scheme=scheme)
    page.evaluate(axe)
    findings: list[str] = []
    for view in VIEWS:
        page.click(f"#tabs button[data-view={view}]")
        page.wait_for_selector("main:not([hidden]) :is(.tile, .card)")
        page.wait_for_timeout(300)
        if view == "browse":
            page.focus("#images .tile:not(.kept)")
            page.keyboard.press(" ")  # the bar of what is selected
        findings += serious(page, f"{view} {width} {scheme}")
        if view == "browse":
            page.keyboard.press("Enter")
            page.wait_for_selector("#viewer[open] .near")
            findings += serious(page, f"viewer {width} {scheme}")
            page.keyboard.press("Escape")
    page.click("#help-open")
    findings += serious(page, f"help {width} {scheme}")
    page.keyboard.press("Escape")
    page.click("#tabs button[data-view=label]")
    page.click("#note-open")
    page.fill("#note", "out of focus")
    findings += serious(page, f"note {width} {scheme}")
    page.keyboard.press("Enter")
    page.click("#flag")
    page.wait_for_selector("#flag[aria-pressed=true]")
    findings += serious(page, f"noted {width} {scheme}")
    page.click("#classes-open")
    page.wait_for_selector("#classes[open] .class-list")
    findings += serious(page, f"classes {width} {scheme}")
    assert findings == []


def test_by_keyboard_alone(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    page.wait_for_selector("#stage[data-image]")
    seen: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        now = page.evaluate(FOCUSED)
        if not now or now in seen:
            break
        seen.append(now)
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", now  # the focus can be seen
    names = " ".join(seen)
    expected = ["Label", "Guesses", "Dashboard", "Export", "#person", "#help-open Keys", "boat",
                "none", "#skip", "Zoom in", "Brightness and contrast", "By class"]  # fmt: skip
    positions = [names.find(name) for name in expected]
    assert -1 not in positions, seen
    # A dialog keeps the focus, and gives it back.
    page.focus("#help-open")
    page.keyboard.press("Enter")
    page.wait_for_selector("#help[open]")
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "help-open"
    # From the first key to the last: label, look for it, and take it back, without a mouse.
    before = page.get_attribute("#stage", "data-image")
    page.keyboard.press("2")
    page.wait_for_function(
        "before => document.getElementById('stage').dataset.image !== before", arg=before
    )
    assert project.store.image(int(before))["label"] == "house"
    page.keyboard.press("Shift+Digit6")
    page.wait_for_selector("#images .tile")
    page.keyboard.press("u")
    page.wait_for_selector("#toast:has-text('1 answer undone')")
    assert project.store.image(int(before))["label"] is None
