"""All images in a browser: filters, likeness, one image large, and labels for many at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.project import Project
from tests.browser.conftest import SEEN, SHOTS
from tests.browser.pictures import CLASSES

pytestmark = pytest.mark.slow

Open = Callable[..., Any]
Serve = Callable[..., str]


def browse(page: Any) -> None:
    page.click("#tabs button[data-view=browse]")
    page.wait_for_selector("#images .tile")


def shown(page: Any) -> list[int]:
    return page.eval_on_selector_all(
        "#images .tile", "all => all.map(t => Number(t.dataset.image))"
    )


def wait_for(page: Any, found: str) -> None:
    page.wait_for_function(
        "text => document.getElementById('found').textContent === text", arg=found
    )


def free(project: Project) -> list[int]:
    """Numbers of images without an answer that are not for the audit, by path."""
    rows = sorted(project.store.images(), key=lambda row: row["path"])
    return [r["id"] for r in rows if not r["reserved"] and r["label"] is None and not r["disputed"]]


def test_filters_and_pages(project: Project, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(project))
    browse(page)
    wait_for(page, "100 images")
    assert len(shown(page)) == 60
    page.click("[aria-label='Next page']")
    page.wait_for_selector("#pages:has-text('61 to 100 of 100')")
    assert len(shown(page)) == 40
    page.select_option("#filter-state", "disputed")
    wait_for(page, "4 images")
    page.click("#reset")
    wait_for(page, "100 images")
    page.select_option("#filter-label", "boat")
    boats = sorted(row["id"] for row in project.store.labelled() if row["label"] == "boat")
    wait_for(page, f"{len(boats)} images")
    assert sorted(shown(page)) == boats
    page.click("#reset")
    page.fill("#filter-name", "scape-004")
    wait_for(page, "10 images")
    page.click("#reset")
    page.select_option("#filter-person", "grace")
    wait_for(page, "4 images")


def test_many_images_get_a_class_and_lose_it_again(
    project: Project, serve: Serve, open_page: Open
) -> None:
    page = open_page(serve(project))
    browse(page)
    page.select_option("#filter-state", "unlabelled")
    page.wait_for_selector("#images .tile .muted")
    first, second = [image for image in shown(page) if image in free(project)][:2]
    page.hover(f"#images [data-image='{first}']")
    page.click(f"#images [data-image='{first}'] .check")
    page.focus(f"#images [data-image='{second}']")
    page.keyboard.press(" ")
    assert page.text_content("#selection strong") == "2 selected"
    assert page.get_attribute(f"#images [data-image='{second}']", "aria-selected") == "true"
    page.click("#selection button:has-text('tree')")
    page.wait_for_selector("#toast:has-text('2 images labelled tree')")
    labels = {row["id"]: row["label"] for row in project.store.labelled()}
    assert labels[first] == labels[second] == "tree"
    page.wait_for_selector(f"#images [data-image='{first}']", state="detached")
    page.click("#toast button")
    page.wait_for_selector(f"#images [data-image='{first}']")
    assert first not in {row["id"] for row in project.store.labelled()}


def test_keys_go_through_images_and_label_them(
    project: Project, serve: Serve, open_page: Open
) -> None:
    page = open_page(serve(project))
    page.keyboard.press("Shift+Digit6")
    page.wait_for_selector("#images .tile")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    image = shown(page)[1]
    page.wait_for_selector(f"[data-image='{image}']:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector("#viewer[open] #facts p")
    page.keyboard.press("3")
    page.wait_for_selector("#viewer [aria-pressed=true]:has-text('tree')")
    assert project.store.image(image)["label"] == "tree"
    page.keyboard.press("ArrowRight")
    path = project.store.image(shown(page)[2])["path"]
    page.wait_for_selector(f"#viewer h2:has-text('{path}')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#viewer", state="hidden")


def test_images_alike(project: Project, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(project))
    browse(page)
    image = shown(page)[0]
    page.click(f"[data-image='{image}'] img")
    page.click("#viewer button:has-text('Similar images')")
    wait_for(page, "99 images")
    page.wait_for_selector(f"#alike img[src='/thumb/{image}']")
    assert image not in shown(page)
    page.click("#alike button")
    wait_for(page, "100 images")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_selection_and_viewer_fit(
    project: Project, serve: Serve, open_page: Open, tmp_path: Path, width: int, scheme: str
) -> None:
    page = open_page(serve(project), width, 844 if width < 400 else 800, color_scheme=scheme)
    folder = Path(SHOTS or tmp_path)
    browse(page)
    page.focus("#images .tile:not(.kept)")
    page.keyboard.press(" ")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.wait_for_function(SEEN)
    page.screenshot(path=folder / f"selection-{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Enter")
    page.wait_for_selector("#viewer[open] #facts p")
    page.wait_for_function(SEEN)
    page.screenshot(path=folder / f"viewer-{width}-{scheme}.png")
    box = page.locator("#viewer").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert all(page.is_visible(f"#viewer button:has-text('{name}')") for name in CLASSES)
