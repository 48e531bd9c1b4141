"""Zoom, pan and light by wheel, drag, pinch and keys; and the labelled images beside a question."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.project import Project
from tests.browser.conftest import SEEN, SHOTS

pytestmark = pytest.mark.slow

Open = Callable[..., Any]
Serve = Callable[..., str]


def transform(page: Any) -> tuple[float, float, float]:
    """Scale and offset of the image in the stage."""
    style = page.eval_on_selector("#stage img", "image => image.style.transform")
    numbers = [float(n) for n in re.findall(r"-?[\d.]+(?:e-\d+)?", style)]
    return (numbers[2], numbers[0], numbers[1]) if numbers else (1.0, 0.0, 0.0)


def test_wheel_drag_keys_and_light(
    project: Project, serve: Serve, open_page: Open, tmp_path: Path
) -> None:
    page = open_page(serve(project))
    page.wait_for_selector("#stage[data-image]")
    box = page.locator("#stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, -500)
    page.wait_for_selector("#stage.zoomed")
    scale, _, _ = transform(page)
    assert scale > 2
    page.mouse.down()
    page.mouse.move(x + 90, y - 40)
    page.mouse.up()
    assert transform(page)[1:] == pytest.approx((90, -40), abs=1)
    page.keyboard.press("ArrowRight")
    assert transform(page)[1] == pytest.approx(30, abs=1)
    page.keyboard.press("+")
    assert transform(page)[0] == pytest.approx(1.4 * scale, rel=1e-4)
    page.keyboard.press("]")
    page.keyboard.press("{")
    assert page.eval_on_selector("#stage img", "image => image.style.filter") == (
        "brightness(1.1) contrast(0.9)"
    )
    page.click(".half")
    page.wait_for_function(SEEN)
    page.screenshot(path=Path(SHOTS or tmp_path) / "zoom.png")
    page.keyboard.press("0")
    assert transform(page)[0] == 1
    page.mouse.dblclick(x, y)
    assert transform(page)[0] == 2.5
    before = page.get_attribute("#stage", "data-image")
    page.keyboard.press("1")  # an answer: the next image is shown whole, in the same light
    page.wait_for_function(
        "before => document.getElementById('stage').dataset.image !== before", arg=before
    )
    assert transform(page)[0] == 1
    assert "brightness(1.1)" in page.eval_on_selector("#stage img", "image => image.style.filter")


def test_two_fingers(project: Project, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(project), 390, 844, has_touch=True)
    page.wait_for_selector("#stage[data-image]")
    box = page.locator("#stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    client = page.context.new_cdp_session(page)

    def touch(kind: str, apart: float) -> None:
        points = [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}] if apart else []
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 30)
    for apart in (40, 60, 80, 90):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    page.wait_for_selector("#stage.zoomed")
    assert transform(page)[0] == pytest.approx(3, rel=0.1)


def test_labelled_images_like_this_one(project: Project, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(project))
    page.wait_for_selector("#neighbours .near img")
    assert page.locator("#neighbours .near button").count() == 6
    first = page.locator("#neighbours .near button").first
    name = first.get_attribute("title")
    first.click()
    page.wait_for_selector(f"#viewer[open] h2:has-text('{name}')")
    page.keyboard.press("4")
    page.wait_for_selector("#viewer [aria-pressed=true]:has-text('none')")
    assert label_of(project, name) == "none"
    page.keyboard.press("Escape")
    page.click("#toast button")
    page.wait_for_selector("#toast:has-text('1 answer undone')")
    assert label_of(project, name) == first.locator("span.name").text_content()


def label_of(project: Project, name: str) -> str:
    return next(row["label"] for row in project.store.labelled() if row["path"] == name)
