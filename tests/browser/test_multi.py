"""Several classes for an image on the page: switch them on and off, submit, correct, decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.likeness import Likeness
from spinal.label.store.project import Project, open_project
from tests.browser.conftest import SEEN, SHOTS
from tests.browser.pictures import make_pictures
from tests.browser.test_accessibility import axe, serious
from tests.browser.test_labelling import press, wait_until_stored
from tests.label.sets import give

pytestmark = pytest.mark.slow

__all__ = ["axe"]  # a fixture of another file
CLASSES = ("boat", "house", "tree")


def make_pairs(folder: Path, n: int) -> dict[str, tuple[str, ...]]:
    """Two landscapes side by side; what is in them."""
    halves = folder.with_name("halves")
    truth = list(make_pictures(halves, 2 * n, size=160).items())
    folder.mkdir()
    labels = {}
    for i, ((left, one), (right, two)) in enumerate(zip(truth[::2], truth[1::2], strict=True)):
        pair = Image.new("RGB", (320, 120))
        pair.paste(Image.open(halves / left), (0, 0))
        pair.paste(Image.open(halves / right), (160, 0))
        name = f"pair-{i:03}.jpg"
        pair.save(folder / name, quality=88)
        labels[name] = tuple(sorted({one, two} & set(CLASSES)))
    return labels


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Project, dict[str, tuple[str, ...]]]]:
    """Sixty pairs, of which thirty are labelled, and a good model's beliefs."""
    labels = make_pairs(tmp_path / "landscapes", 60)
    project = open_project(tmp_path / "landscapes", classes=CLASSES, encoder="pixels", multi=True)
    project.scan()
    store, rng = project.store, np.random.default_rng(0)
    rows = store.images()
    images = np.array([row["id"] for row in rows])
    truth = np.array([[c in labels[row["path"]] for c in CLASSES] for row in rows])
    probs = np.clip(np.where(truth, 0.85, 0.12) + rng.normal(0, 0.07, truth.shape), 0.01, 0.99)
    free = [row for row in rows if not row["reserved"]]
    for row in rows[:30]:
        give(project, row["id"], labels[row["path"]])
    wrong = [row for row in rows[:30] if not row["reserved"]]
    give(project, wrong[0]["id"], tuple({*labels[wrong[0]["path"]]} ^ {"boat"}))  # a mistake
    for row in wrong[1:6]:
        give(project, row["id"], labels[row["path"]], "grace")
    give(project, wrong[6]["id"], tuple({*labels[wrong[6]["path"]]} ^ {"tree"}), "grace")
    audited = np.array([row["id"] for row in store.labelled() if row["reserved"]])
    Beliefs(
        2, CLASSES, images, probs.astype(np.float32),
        rng.normal(0, 9, len(rows)).astype(np.float32), images[:30], probs[:30].astype(np.float32),
        {"spn": 0.6, "logistic": 0.4}, "", audited,
        probs[audited - images[0]].astype(np.float32), "pool", True,
    ).save(project.beliefs_file)  # fmt: skip
    for i, (n, right) in enumerate([(5, 3), (8, 6)], 1):
        store.add_round(i, 15 * i, 2.5)
        store.add_audit(i, n, right, (right / n, right / n - 0.3, right / n + 0.2))
    queue = [row["id"] for row in free if row["id"] > images[29]]
    store.questions.hand_over(2, [(image, "uncertain") for image in queue])
    file = project.features_folder / "drawn" / "vectors.f32"
    file.parent.mkdir(parents=True)
    truth.astype(np.float32).tofile(file)
    Likeness(images, np.arange(len(images)), 3, file).save(project.likeness_file)
    yield project, labels
    project.close()


def stored(project: Project, image: int) -> Any:
    return project.store.shown(project.store.image(image)["label"])


def shown(page: Any) -> int:
    return int(page.get_attribute("#stage", "data-image"))


def test_by_keyboard_and_mouse(
    made: Any, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    project, _ = made
    page = open_page(serve(project))
    page.wait_for_selector("#stage img")
    while not page.locator("#take").count():  # hidden where the audit asks
        press(page, " ")
    first = shown(page)
    assert "Submit none of these" in page.text_content("#submit")
    page.keyboard.press("1")
    page.keyboard.press("t")
    assert page.get_attribute("#choices [data-label=boat]", "aria-pressed") == "true"
    assert page.get_attribute("#choices [data-label=house]", "aria-pressed") == "false"
    assert "Submit boat, tree" in page.text_content("#submit")
    page.keyboard.press("1")
    page.keyboard.press("h")
    press(page, "Enter")
    wait_until_stored(page)
    assert stored(project, first) == ("house", "tree")
    assert "Submit none of these" in page.text_content("#submit")  # nothing is on for the next
    press(page, "u")
    assert shown(page) == first
    assert stored(project, first) is None
    guess = [name for name in page.text_content("#belief strong").split(", ") if name in CLASSES]
    press(page, "Shift+Enter")
    wait_until_stored(page)
    assert stored(project, first) == tuple(sorted(guess))
    second = shown(page)
    press(page, "Enter")
    wait_until_stored(page)
    assert stored(project, second) == ()
    third = shown(page)
    page.click("#choices [data-label=house]")
    page.click("#submit")
    page.wait_for_function(
        "before => document.getElementById('stage').dataset.image !== before", arg=str(third)
    )
    wait_until_stored(page)
    assert stored(project, third) == ("house",)


def test_guesses_mistakes_and_disputes(
    made: Any, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    project, labels = made
    page = open_page(serve(project))
    page.click("#tabs button[data-view=guesses]")
    page.wait_for_selector("#grid .tile")
    page.wait_for_function(SEEN)
    tile = page.locator("#grid .tile").first
    image = int(tile.get_attribute("data-image"))
    before = {name.strip() for name in tile.locator("strong").text_content().split(",")}
    tile.focus()
    page.keyboard.press("2")
    assert {n.strip() for n in tile.locator("strong").text_content().split(",")} in (
        before ^ {"house"}, {"none of these"},
    )  # fmt: skip
    page.wait_for_function(
        "() => !document.querySelector('#tiles-actions .primary').textContent.includes('Confirm 0')"
    )
    labelled = project.store.progress()["labelled"]
    page.click("#tiles-actions .primary")
    page.wait_for_selector("#toast:not([hidden])")
    wait_until_stored(page)
    assert project.store.progress()["labelled"] > labelled
    assert stored(project, image) == tuple(sorted((before ^ {"house"}) - {"none of these"}))

    page.click("#tabs button[data-view=mistakes]")
    page.wait_for_selector("#grid.mistakes .tile")
    tile = page.locator("#grid .tile").first
    image = int(tile.get_attribute("data-image"))
    assert "boat" in tile.locator(".caption .muted").text_content()
    assert tile.locator(".save span").text_content() == "Keep"
    tile.focus()
    page.keyboard.press("b")
    assert tile.locator(".save span").text_content() == "Save"
    page.keyboard.press("Enter")
    page.wait_for_function(
        "image => !document.querySelector(`#grid [data-image='${image}']`)", arg=image
    )
    path = project.store.image(image)["path"]
    assert stored(project, image) == tuple(sorted(labels[path]))

    page.click("#tabs button[data-view=disagreements]")
    page.wait_for_selector("#grid.disagreements .tile")
    assert "Kappa by class" in page.text_content("#agreement")
    assert "tree" in page.text_content("#agreement tbody")
    page.locator("#grid .save").first.click()
    page.wait_for_selector("#tiles-empty:not([hidden])")
    assert project.store.progress()["disputed"] == 0


def test_browse_and_correct(
    made: Any, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    project, _ = made
    page = open_page(serve(project))
    page.click("#tabs button[data-view=browse]")
    page.select_option("#filter-state", "none")
    page.wait_for_function(
        "() => document.querySelector('#images .caption').textContent.includes('none of these')"
    )
    page.select_option("#filter-state", "unlabelled")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#images .caption')]"
        ".every(({ textContent: text }) => text.includes('?') || text.includes('audit'))"
    )
    page.wait_for_selector("#images .tile:not(.kept)")
    tiles = page.locator("#images .tile:not(.kept)")
    images = [int(tiles.nth(i).get_attribute("data-image")) for i in range(2)]
    for i in range(2):
        tiles.nth(i).locator(".check").click()
    page.click("#selection button:text-is('tree')")
    page.click("#selection button:text-is('boat')")
    page.click("#selection button.primary")
    page.wait_for_selector("#toast:not([hidden])")
    assert "labelled boat, tree" in page.text_content("#toast")
    assert [stored(project, image) for image in images] == [("boat", "tree")] * 2
    page.select_option("#filter-state", "labelled")
    page.select_option("#filter-label", "house")
    page.wait_for_function(
        "() => document.querySelector('#images .caption strong')?.textContent.includes('house')"
    )
    page.locator("#images .tile img").first.click()
    page.wait_for_selector("#viewer[open] #facts p")
    image = int(page.get_attribute("#viewer #viewer-stage img", "src").rsplit("/", 1)[1])
    before = set(stored(project, image))
    page.click("#viewer .choices button:has-text('boat')")
    page.click("#viewer .choices .primary")
    page.wait_for_selector("#toast:not([hidden])")
    wait_until_stored(page)
    assert set(stored(project, image)) == before ^ {"boat"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_fits(
    made: Any, serve: Callable[..., str], open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    project, _ = made
    height = 844 if width < 400 else 800
    page = open_page(serve(project), width, height, color_scheme=scheme)
    for view in ("label", "guesses", "mistakes", "disagreements", "browse", "dashboard", "export"):
        page.click(f"#tabs button[data-view={view}]")
        page.wait_for_selector(
            {
                "label": "#stage img",
                "dashboard": "#dashboard .figures",
                "export": ".formats",
                "browse": "#images .tile",
            }.get(view, "#grid .tile")
        )
        page.wait_for_function(SEEN)
        if view == "label":
            page.keyboard.press("1")
            page.keyboard.press("3")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        if view == "dashboard":
            assert "Macro-F1" in page.text_content("#dashboard")
        if view == "export":
            assert page.locator("[data-format=imagefolder]").count() == 0
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/multi-{view}-{scheme}-{width}.png")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(
    made: Any,
    serve: Callable[..., str],
    open_page: Callable[..., Any],
    axe: str,
    width: int,
    scheme: str,
) -> None:
    project, _ = made
    page = open_page(serve(project), width, 844 if width < 400 else 800, color_scheme=scheme)
    page.evaluate(axe)
    findings: list[str] = []
    for view in ("label", "guesses", "mistakes", "disagreements", "dashboard"):
        page.click(f"#tabs button[data-view={view}]")
        page.wait_for_selector("main:not([hidden]) :is(.tile, .card)")
        page.wait_for_timeout(300)
        if view == "label":
            page.keyboard.press("1")
        findings += serious(page, f"{view} {width} {scheme}")
    assert findings == []
