"""Flags, notes and colours on the page: by key and by mouse, kept, shown, and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.colours import contrast
from spinal.label.store.notes import joined
from spinal.label.store.project import Project
from tests.browser.conftest import SEEN, SHOTS
from tests.browser.pictures import CLASSES
from tests.browser.test_browse import browse, shown, wait_for
from tests.browser.test_labelling import image, press, wait_until_stored

pytestmark = pytest.mark.slow

Open = Callable[..., Any]
Serve = Callable[..., str]

#: The colours behind and of each spot on the page.
SPOTS = """() => [...document.querySelectorAll('.swatch')].filter((spot) => spot.offsetParent).map(
    (spot) => {
    const solid = (node) => {
        const colour = getComputedStyle(node).backgroundColor;
        return colour === 'rgba(0, 0, 0, 0)' ? solid(node.parentElement) : colour;
    };
    return [getComputedStyle(spot).backgroundColor, solid(spot.parentElement)];
})"""


def as_hex(colour: str) -> str:
    numbers = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return "#" + "".join(f"{int(number):02x}" for number in numbers)


def test_flag_and_note_by_key_while_labelling(
    project: Project, serve: Serve, open_page: Open, tmp_path: Path
) -> None:
    page = open_page(serve(project))
    first = int(image(page))
    page.keyboard.press(".")
    page.wait_for_selector("#flag[aria-pressed=true]")
    page.keyboard.press(",")
    page.wait_for_selector("#note-dialog[open]")
    page.keyboard.type("a boat behind a house")  # its letters are keys of classes elsewhere
    page.screenshot(path=Path(SHOTS or tmp_path) / "note.png")
    page.keyboard.press("Enter")
    page.wait_for_selector("#remarks:has-text('a boat behind a house')")
    page.screenshot(path=Path(SHOTS or tmp_path) / "noted.png")
    assert int(image(page)) == first  # neither is an answer
    assert project.store.notes.of(first)[0]["flagged"]
    assert joined(project.store.notes.of(first)) == "a boat behind a house"
    press(page, "b")
    wait_until_stored(page)
    assert page.get_attribute("#flag", "aria-pressed") == "false"  # the next image has none
    assert page.is_hidden("#remarks")
    page.keyboard.press("u")
    page.wait_for_function(f"() => document.getElementById('stage').dataset.image === '{first}'")
    page.wait_for_selector("#flag[aria-pressed=true]")
    page.keyboard.press(".")
    page.wait_for_selector("#flag[aria-pressed=false]")
    page.keyboard.press(",")
    page.fill("#note", "something else")
    page.keyboard.press("Escape")
    page.wait_for_selector("#note-dialog", state="hidden")
    assert joined(project.store.notes.of(first)) == "a boat behind a house"


def test_a_note_waits_for_the_server(project: Project, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(project))
    first = int(image(page))
    page.route("**/api/notes", lambda route: route.abort())
    page.keyboard.press(".")
    page.wait_for_selector("#alert:has-text('does not answer')")
    page.unroute("**/api/notes")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#flag[aria-pressed=true]")
    assert int(image(page)) == first
    assert project.store.notes.of(first)[0]["flagged"]


def test_flags_and_notes_among_all_images(
    project: Project, serve: Serve, open_page: Open, tmp_path: Path
) -> None:
    project.store.notes.set([1, 2], "grace", note="overexposed")
    page = open_page(serve(project))
    browse(page)
    page.locator(".check").nth(0).click()
    page.locator(".check").nth(1).click()
    page.click("#flag-selected")
    page.wait_for_selector("#toast:has-text('2 images flagged')")
    page.wait_for_function("() => document.querySelectorAll('.marks .flagged').length === 2")
    flagged = sorted(
        image for image, said in project.store.notes.all().items() if said[-1]["flagged"]
    )
    assert len(flagged) == 2
    page.select_option("#filter-marked", "flagged")
    wait_for(page, "2 images")
    assert sorted(shown(page)) == flagged
    page.click("#toast button")  # undo
    wait_for(page, "0 images")
    page.select_option("#filter-marked", "noted")
    wait_for(page, "2 images")
    assert sorted(shown(page)) == [1, 2]
    page.focus("#images .tile")
    page.keyboard.press("Enter")
    page.wait_for_selector("#viewer[open] .remark:has-text('overexposed (grace)')")
    page.keyboard.press(".")
    page.wait_for_selector("#viewer .flag[aria-pressed=true]")
    page.keyboard.press(",")
    page.fill("#note", "mine")
    page.keyboard.press("Enter")
    page.wait_for_selector("#viewer .remark:has-text('mine')")
    page.screenshot(path=Path(SHOTS or tmp_path) / "viewer-noted.png")
    page.keyboard.press("Escape")
    page.wait_for_selector("#images .marks .flagged")


def test_controls_of_all_images_change_without_losing_them(
    project: Project, serve: Serve, open_page: Open
) -> None:
    page = open_page(serve(project))
    browse(page)
    before = shown(page)
    project.store.classes.add("bird", "grace")
    page.wait_for_selector("#filter-label option[value=bird]", state="attached")
    page.wait_for_selector("#images .tile")
    assert shown(page) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_the_same_in_all_views_and_can_be_seen(
    project: Project, serve: Serve, open_page: Open, scheme: str, tmp_path: Path
) -> None:
    page = open_page(serve(project), color_scheme=scheme)
    page.click("#classes-open")
    page.fill("[aria-label='Colour of boat']", "#ffffff")
    page.dispatch_event("[aria-label='Colour of boat']", "change")
    page.wait_for_selector("text=Last change: gave boat the colour #ffffff.")
    page.screenshot(path=Path(SHOTS or tmp_path) / f"classes-{scheme}.png")
    page.keyboard.press("Escape")
    chosen = {name: colour for name, (colour, _) in project.store.classes.colours().items()}
    for view, where in (("label", "#choices .name"), ("guesses", "#chips button"),
                        ("mistakes", ".tile strong"), ("browse", "#images strong"),
                        ("dashboard", ".matrix tbody th")):  # fmt: skip
        page.click(f"#tabs button[data-view={view}]")
        page.wait_for_selector(f"main:not([hidden]) {where} .swatch")
        page.wait_for_function(SEEN)
        found = page.eval_on_selector_all(
            f"{where}:has(.swatch)",
            "all => all.map((n) => [n.textContent.trim(), "
            "getComputedStyle(n.querySelector('.swatch')).backgroundColor])",
        )
        assert found
        assert all(as_hex(colour) == chosen[name] for name, colour in found), view
        worst = min(contrast(as_hex(own), as_hex(behind)) for own, behind in page.evaluate(SPOTS))
        assert worst >= 3, view
    assert set(chosen) == set(CLASSES)
