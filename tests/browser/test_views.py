"""Every view at two widths, by keyboard and mouse; names that try to be more than names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from tests.browser.conftest import SEEN, SHOTS
from tests.browser.pictures import CLASSES, make_pictures

pytestmark = pytest.mark.slow

VIEWS = ("label", "guesses", "mistakes", "outliers", "disagreements", "browse", "dashboard",
         "export")  # fmt: skip


def go(page: Any, view: str) -> None:
    page.click(f"#tabs button[data-view={view}]")
    if view != "label":
        page.wait_for_selector("main:not([hidden]) :is(.tile, .card)")


def tiles(page: Any) -> list[int]:
    return [
        int(n) for n in page.eval_on_selector_all(".tile", "all => all.map(t => t.dataset.image)")
    ]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits(
    project: Project,
    serve: Callable[..., str],
    open_page: Callable[..., Any],
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    page = open_page(serve(project), width, 844 if width < 400 else 800, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for view in VIEWS:
        go(page, view)
        page.wait_for_function(SEEN)
        page.screenshot(path=Path(SHOTS or tmp_path) / f"{view}-{width}-{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    light = sum(int(c) for c in background[4:-1].split(",")) > 380
    assert light == (scheme == "light")
    host = page.url.split("/")[2]
    assert all(url.split("/")[2] == host for url in asked)  # nothing comes from elsewhere


def confirmable(page: Any) -> int:
    """How many tiles the button would confirm, once all in sight are drawn."""
    page.wait_for_function(SEEN)
    page.wait_for_timeout(300)
    return int(page.text_content("#tiles-actions button").split()[1])


def test_only_guesses_that_were_seen_are_confirmed_and_all_undone_together(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project), 390, 500)
    page.keyboard.press("Shift+Digit2")
    page.wait_for_selector(".tile")
    shown, before = tiles(page), project.store.progress()["labelled"]
    seen = confirmable(page)
    assert 0 < seen < len(shown)
    assert f"{len(shown) - seen} more further down" in page.text_content("#tiles-actions")
    page.keyboard.press("Enter")  # nothing is in focus
    page.wait_for_selector("#toast:not([hidden])")
    labels = {row["id"] for row in project.store.labelled()}
    assert [image for image in shown if image in labels] == shown[:seen]
    page.wait_for_function("n => document.querySelectorAll('.tile').length === n",
                           arg=len(shown) - seen)  # fmt: skip
    more = confirmable(page)
    page.keyboard.press("Enter")
    page.wait_for_function("n => document.querySelectorAll('.tile').length === n",
                           arg=len(shown) - seen - more)  # fmt: skip
    page.keyboard.press("u")
    page.wait_for_function("n => document.querySelectorAll('.tile').length === n",
                           arg=len(shown) - seen)  # fmt: skip
    assert project.store.progress()["labelled"] == before + seen
    go(page, "label")
    page.keyboard.press("u")  # there, too, it takes back all that was confirmed at once
    page.wait_for_selector(f"#toast:has-text('{seen} answers undone')")
    assert project.store.progress()["labelled"] == before


def test_guesses_are_confirmed_in_bulk_and_taken_back(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project), 1280, 3000)  # all tiles are in view
    page.keyboard.press("Shift+Digit2")
    page.wait_for_selector(".tile")
    shown = tiles(page)
    assert confirmable(page) == len(shown)
    before = project.store.progress()["labelled"]
    page.keyboard.press("ArrowRight")  # the first tile
    page.keyboard.press("3")  # is a tree
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")  # the second one is left out
    page.keyboard.press("Enter")
    page.wait_for_selector("#toast:not([hidden])")
    labels = {row["id"]: row["label"] for row in project.store.labelled()}
    assert labels[shown[0]] == "tree"
    assert shown[1] not in labels
    assert all(labels[image] == "boat" for image in shown[2:])
    assert project.store.progress()["labelled"] == before + len(shown) - 1
    page.click("#toast button")
    page.wait_for_function("n => document.querySelectorAll('.tile').length === n", arg=len(shown))
    assert project.store.progress()["labelled"] == before


def test_mistakes_are_kept_or_corrected(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    page.evaluate("localStorage.setItem('spinal-person', 'ada')")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    go(page, "mistakes")
    first, second = tiles(page)[:2]
    was = project.store.image(first)["label"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"[data-image='{first}']", state="detached")
    assert project.store.image(first)["label"] == was
    page.wait_for_selector(f"[data-image='{second}']:focus")  # the next one is in focus
    page.click(f"[data-image='{second}'] button:has-text('house')")
    page.wait_for_selector(f"[data-image='{second}']", state="detached")
    assert project.store.image(second)["label"] == "house"


def test_outliers_are_skipped_and_disputes_decided(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    go(page, "outliers")
    first = tiles(page)[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.wait_for_selector(f"[data-image='{first}']", state="detached")
    assert project.store.answers()[-1]["label"] is None
    assert page.text_content(".badge") == "4"
    go(page, "disagreements")
    page.wait_for_selector("#grid.disagreements .tile")
    disputed = tiles(page)[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("h")
    page.wait_for_selector(f"[data-image='{disputed}']", state="detached")
    assert project.store.image(disputed)["label"] == "house"
    assert project.store.progress()["disputed"] == 3


def test_names_are_only_ever_text(
    tmp_path: Path, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    folder = tmp_path / "<i>images"
    make_pictures(folder, 3, size=64)
    evil = "<img src=x onerror='window.hacked=1'>"
    for i, old in enumerate(sorted(folder.iterdir())):
        old.rename(folder / f"{i}<svg onload=window.hacked=1>.jpg")
    project = open_project(folder, classes=(evil, "dog"), encoder="pixels")
    project.scan()
    link = serve(project)
    page = open_page(link)
    assert page.text_content("#title") == "<i>images"
    assert "<svg onload" in page.text_content("#file")
    assert page.text_content("#choices .name") == evil
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    page.keyboard.press("?")
    assert evil in page.text_content("#help")
    for view in VIEWS[1:]:
        page.goto(f"{link}#{view}")
    assert page.evaluate("window.hacked") is None
    assert page.query_selector("#choices img, #file svg, #title i") is None
    project.close()


def test_a_reviewer_sees_how_far_people_agree_and_decides(
    project: Project, serve: Callable[[Project], str], open_page: Callable[..., Any]
) -> None:
    image = next(r["id"] for r in project.store.labelled() if not r["reserved"])
    old = project.store.image(image)["label"]
    other = next(name for name in CLASSES if name != old)
    project.store.answer([Answer("eve", image, other)], "eve")
    page = open_page(serve(project))
    go(page, "disagreements")
    page.wait_for_selector("#agreement tbody tr")
    rows = page.locator("#agreement tbody tr").all_inner_texts()
    assert len(rows) == 2
    assert rows[0].startswith("ada, grace")
    all_tiles = len(tiles(page))
    page.click("#agreement button:has-text('ada, eve')")
    page.wait_for_function(
        "n => document.querySelectorAll('#grid .tile').length !== n", arg=all_tiles
    )
    assert tiles(page) == [image]
    assert "eve" in page.inner_text("#grid .tile")
    page.click(f"#grid .tile-choices button:has-text('{other}')")
    page.wait_for_selector("#toast:not([hidden])")
    assert project.store.image(image)["label"] == other
    page.click("#agreement button:has-text('ada, eve')")
    page.wait_for_function(
        "n => document.querySelectorAll('#grid .tile').length === n", arg=all_tiles - 1
    )
