"""Texts on the page, by keyboard: read, unfold, label, undo, confirm guesses, search."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinal.label.exports.export import labels_of
from spinal.label.learning.beliefs import Beliefs
from spinal.label.store.project import Project, open_project
from spinal.label.store.texts import text_name
from tests.browser.test_labelling import press
from tests.label.texts import CLASSES, TOPICS, make_texts, write_table

pytestmark = pytest.mark.slow

TEXTS, LABELS = make_texts(40)
TEXTS = [f"{text} <b>not bold</b>\n" + "And so on. " * 300 + "The referee." for text in TEXTS]
TRUTH = dict(zip(map(text_name, TEXTS), LABELS, strict=True))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project in which a model has guessed, rightly, and marked words."""
    table = tmp_path / "news.csv"
    write_table(table, TEXTS)
    project = open_project(table, classes=CLASSES, text_column="body")
    project.scan()
    rows = project.store.images()
    classes = np.array([CLASSES.index(TRUTH[row["path"]]) for row in rows])
    probs = np.where(np.arange(2) == classes[:, None], 0.9, 0.1).astype(np.float32)
    images = np.array([row["id"] for row in rows])
    density = np.linspace(0, 1, len(rows)).astype(np.float32)
    Beliefs(1, CLASSES, images, probs, density).save(project.beliefs_file)
    project.store.add_round(1, 10, 1.0)
    free = [row["id"] for row in rows if not row["reserved"]]
    project.store.questions.hand_over(1, [(image, "uncertain") for image in free])
    marks = {str(r["id"]): [[w, 1.0] for w in TOPICS[TRUTH[r["path"]]]] for r in rows}
    project.marks_file.write_text(json.dumps(marks))
    yield project
    project.close()


def shown(page: Any, project: Project) -> str:
    """The class of the text on the page."""
    number = int(page.get_attribute("#stage", "data-image"))
    return TRUTH[project.store.image(number)["path"]]


def test_texts_by_keyboard(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    page.wait_for_selector("#stage .text-body")
    assert page.text_content("#why-title") == "Why this text"
    assert page.text_content("#file").startswith("row ")
    assert "<b>not bold</b>" in page.text_content("#stage")  # text, not HTML
    while page.locator("#stage mark").count() == 0:  # hidden where the audit asks
        press(page, " ")
    label = shown(page, project)
    marked = page.eval_on_selector_all("#stage mark", "all => all.map(m => m.textContent)")
    assert {word.lower() for word in marked} <= set(TOPICS[label])

    assert "more characters" in page.text_content(".text-unfold")
    assert "The referee." not in page.text_content("#stage")
    page.keyboard.press("ArrowDown")
    assert "The referee." in page.text_content("#stage")
    assert page.locator(".text-unfold").count() == 0
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.getElementById('stage').scrollTop > 0")

    title = page.text_content("#file")
    press(page, str(CLASSES.index(label) + 1))
    press(page, "u")
    assert page.text_content("#file") == title
    for _ in range(5):
        press(page, str(CLASSES.index(shown(page, project)) + 1))

    page.keyboard.press("Shift+2")
    page.wait_for_selector("#grid .tile-text mark")
    page.wait_for_selector("#tiles-actions .primary")
    before = project.store.progress()["labelled"]
    page.keyboard.press("Enter")
    page.wait_for_selector("#toast:not([hidden])")
    assert project.store.progress()["labelled"] > before
    given = labels_of(project).given
    assert all(TRUTH[path] == label for path, label in zip(given.path, given.label, strict=True))

    page.click("#tabs button[data-view=browse]")
    page.fill("#filter-name", "number 7:")
    page.wait_for_function("() => document.querySelectorAll('#images .tile').length === 1")
    page.wait_for_function(
        "() => document.querySelector('#images .tile-text').textContent.includes('Number 7:')"
    )
    page.click("#images .tile-text")
    page.wait_for_selector("#viewer .text-body")
    assert page.text_content("#viewer h2") == "row 8"


@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_of_texts_fits(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any], width: int
) -> None:
    page = open_page(serve(project), width, 844 if width < 400 else 800)
    for view in ("label", "guesses", "outliers", "browse"):
        page.click(f"#tabs button[data-view={view}]")
        page.wait_for_selector(".text-body" if view == "label" else "main:not([hidden]) .tile-text")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
