"""Classes on the page: changed, found among many, and the model's guess taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project, open_project
from tests.browser.pictures import make_pictures
from tests.browser.test_labelling import image, press, wait_until_stored

pytestmark = pytest.mark.slow

MANY = ("arctic fox", "fox", "red fox", *(f"animal {i}" for i in range(57)))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[tuple[str, ...]], Project]]:
    opened = []

    def project(classes: tuple[str, ...]) -> Project:
        folder = tmp_path / "landscapes"
        make_pictures(folder, 24)
        project = open_project(folder, classes=classes, encoder="pixels", seed=1)
        project.scan()
        images = np.array([row["id"] for row in project.store.images()])
        probs = np.full((24, len(classes)), 0.1 / len(classes), np.float32)
        probs[:, 1] += 0.9
        log_density = np.zeros(24, np.float32)
        Beliefs(1, classes, images, probs, log_density, images[:0], probs[:0]).save(
            project.beliefs_file
        )
        opened.append(project)
        return project

    yield project
    for each in opened:
        each.close()


def names(page: Any) -> list[str]:
    return page.locator("#choices button:visible .name").all_inner_texts()


def last_label(page: Any, project: Project) -> str:
    wait_until_stored(page)
    return project.store.answers()[-1]["label"]


def test_classes_change_on_the_page(
    make: Callable[..., Project], serve: Callable[[Project], str], open_page: Callable[..., Any]
) -> None:
    project = make(("boat", "house", "tree"))
    page = open_page(serve(project))
    press(page, "b")
    press(page, "t")
    wait_until_stored(page)
    page.click("#classes-open")
    page.fill("#new-class", "bird")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Last change: added bird.")
    page.fill("[data-class=boat]", "ship")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Last change: renamed boat to ship.")
    page.fill("[aria-label='Key of bird']", "x")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Last change: gave bird the key X.")
    page.click("[aria-label='Remove tree']")
    assert "(1 image) are set aside" in page.inner_text(".sure")
    page.click(".sure .primary")
    page.wait_for_selector("text=Last change: removed tree.")
    page.click("[aria-label='Merge ship']")
    page.select_option(".sure select", "house")
    page.click(".sure .primary")
    page.wait_for_selector("text=Last change: merged ship into house.")
    assert names(page) == ["house", "bird"]
    assert project.store.progress()["classes"] == {"house": 1}
    page.click(".last-change button")
    page.wait_for_selector("text=Last change: removed tree.")
    page.click(".last-change button")
    page.wait_for_selector("text=Last change: gave bird the key X.")
    assert names(page) == ["ship", "house", "tree", "bird"]
    page.fill("[data-class=tree]", "ship")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=two classes have the same name")
    page.click("#classes form[method=dialog] button")
    press(page, "x")
    assert last_label(page, project) == "bird"
    assert project.store.progress()["classes"] == {"ship": 1, "tree": 1, "bird": 1}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_image_stays_large_and_a_class_is_found_by_typing(
    make: Callable[..., Project],
    serve: Callable[[Project], str],
    open_page: Callable[..., Any],
    width: int,
    height: int,
) -> None:
    project = make(MANY)
    page = open_page(serve(project), width=width, height=height)
    stage = page.locator("#stage").bounding_box()
    assert stage["height"] >= 0.42 * height
    before = image(page)
    page.keyboard.press("/")
    page.keyboard.type("fox")
    assert names(page) == ["arctic fox", "fox", "red fox"]
    assert page.inner_text("#choices .first .name") == "fox"
    press(page, "Enter")
    assert last_label(page, project) == "fox"
    assert image(page) != before
    page.click("#find")
    page.keyboard.type("56")
    press(page, "Enter")
    assert last_label(page, project) == "animal 56"
    page.click("#find")
    page.keyboard.type("fox")
    page.keyboard.press("Escape")
    assert len(names(page)) == 60


def test_enter_takes_the_guess_but_none_that_is_hidden(
    make: Callable[..., Project], serve: Callable[[Project], str], open_page: Callable[..., Any]
) -> None:
    project = make(("boat", "house", "tree"))
    page = open_page(serve(project))
    taken = hidden = 0
    for _ in range(8):
        reserved = project.store.image(int(image(page)))["reserved"]
        if reserved:
            hidden += 1
            page.keyboard.press("Enter")
            page.wait_for_timeout(300)
            press(page, "b")
        else:
            taken += 1
            press(page, "Enter")
        assert last_label(page, project) == ("boat" if reserved else "house")
    assert taken
    assert hidden
    page.click("#choices [data-label=tree]")
    page.wait_for_timeout(300)
    press(page, "b" if project.store.image(int(image(page)))["reserved"] else "Enter")
    assert last_label(page, project) != "tree"  # the button that was clicked has not kept the focus
