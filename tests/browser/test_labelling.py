"""A person at the keyboard: label, undo, reload; and a server that is killed in the middle."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinal.label.store.project import open_project
from tests.browser.conftest import Command
from tests.browser.pictures import CLASSES, make_pictures

pytestmark = pytest.mark.slow

KEYS = dict(zip(CLASSES, "1234", strict=True))


def image(page: Any) -> str:
    return page.get_attribute("#stage", "data-image")


def press(page: Any, key: str) -> None:
    """Press a key, and wait until the next image is shown."""
    before = image(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.getElementById('stage').dataset.image !== before", arg=before
    )


def wait_until_stored(page: Any) -> None:
    """Wait until the server has acknowledged all answers."""
    page.wait_for_function("() => localStorage.getItem('spinal-outbox') === null")


def answer(page: Any, truth: dict[str, str], given: dict[str, str]) -> None:
    path = page.text_content("#file")
    given[path] = truth[path]
    press(page, KEYS[truth[path]])


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    folder = tmp_path / "landscapes"
    return folder, make_pictures(folder, 120, size=160)


def test_thirty_images_undo_reload_kill_and_export(
    folder: tuple[Path, dict[str, str]],
    command: Callable[..., Command],
    open_page: Callable[..., Any],
    tmp_path: Path,
) -> None:
    images, truth = folder
    options = ("--classes", ",".join(CLASSES), "--features", "pixels", "--budget", "30")
    server = command(images, *options)
    page = open_page(server.link)
    given: dict[str, str] = {}
    for _ in range(10):
        answer(page, truth, given)

    wrong = page.text_content("#file")
    press(page, "t")  # letters work as well
    press(page, "u")
    assert page.text_content("#file") == wrong
    answer(page, truth, given)
    skipped = page.text_content("#file")
    press(page, " ")

    waiting = page.text_content("#file")
    page.reload()
    page.wait_for_selector("#stage[data-image]")
    assert page.text_content("#file") == waiting  # it is still this page's question
    for _ in range(7):
        answer(page, truth, given)

    # The server dies while an answer is on its way, and comes back.
    server.kill()
    path = page.text_content("#file")
    given[path] = truth[path]
    page.keyboard.press(KEYS[truth[path]])
    page.wait_for_selector("#alert:not([hidden])")
    page.wait_for_function("path => document.getElementById('file').textContent !== path", arg=path)
    answer(page, truth, given)  # kept, too
    server.start()
    page.wait_for_selector("#alert", state="hidden")
    wait_until_stored(page)

    # And once more, right after an answer was acknowledged; this time the page is closed, too.
    answer(page, truth, given)
    wait_until_stored(page)
    server.kill()
    page.close()
    server.start()
    page = open_page(server.link)
    while len(given) < 30:
        answer(page, truth, given)
    page.wait_for_function("() => document.getElementById('progress').textContent.startsWith('30')")

    project = open_project(images)
    rows = project.store.answers()
    standing = [row for row in rows if row["undone"] is None and row["label"] is not None]
    assert {row["path"]: row["label"] for row in standing} == given  # none lost
    assert len(standing) == 30  # none doubled
    assert [row["path"] for row in rows if row["undone"]] == [wrong]
    assert [row["path"] for row in rows if row["label"] is None] == [skipped]
    project.close()

    table = tmp_path / "labels.csv"
    done = subprocess.run(
        [sys.executable, "-m", "spinal", "export", str(images), "--to", str(table)],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with table.open() as file:
        assert {row["path"]: row["label"] for row in csv.DictReader(file)} == given


def test_the_next_image_comes_at_once_while_the_model_learns(
    folder: tuple[Path, dict[str, str]],
    command: Callable[..., Command],
    open_page: Callable[..., Any],
) -> None:
    images, truth = folder
    server = command(images, "--classes", ",".join(CLASSES), "--features", "pixels")
    page = open_page(server.link)
    given: dict[str, str] = {}
    busy = 0
    while len(given) < 60:
        if len(given) == 30:  # enough for a fit, which on a busy machine begins late
            page.wait_for_selector("#status:has-text('Learning')", timeout=300_000)
        answer(page, truth, given)
        busy += "Learning" in page.text_content("#status")
        page.wait_for_timeout(150)
    page.wait_for_function("() => document.querySelector('#curve svg')", timeout=300_000)
    waits = page.evaluate("performance.getEntriesByName('next-image').map(e => e.duration)")
    assert len(waits) == 60
    # Answers that were taken, and images that were shown, while it learned. How fast they come is
    # measured by benchmarks/label.py.
    assert busy > 3


def test_two_people_do_not_get_the_same_image(
    folder: tuple[Path, dict[str, str]],
    serve: Callable[..., str],
    open_page: Callable[..., Any],
) -> None:
    images, truth = folder
    project = open_project(images, classes=CLASSES, encoder="pixels")
    project.scan()
    link = serve(project)
    ada, bob = open_page(link), open_page(link)
    bob.evaluate("localStorage.setItem('spinal-person', 'bob')")
    bob.reload()
    bob.wait_for_selector("#stage[data-image]")
    given: list[dict[str, str]] = [{}, {}]
    for _ in range(8):
        for page, said in zip((ada, bob), given, strict=True):
            answer(page, truth, said)
    assert len(given[0]) == len(given[1]) == 8
    assert not given[0].keys() & given[1].keys()
    for page in (ada, bob):
        wait_until_stored(page)
    assert sorted(project.store.people().values()) == [8, 8]
    project.close()


def test_an_answer_is_kept_until_there_is_room_for_it(
    folder: tuple[Path, dict[str, str]],
    serve: Callable[..., str],
    open_page: Callable[..., Any],
) -> None:
    images, _ = folder
    project = open_project(images, classes=CLASSES, encoder="pixels")
    project.scan()
    page = open_page(serve(project))
    page.wait_for_selector("#stage[data-image]")
    press(page, "1")
    wait_until_stored(page)
    database = project.store._database
    database.all("PRAGMA query_only = ON")  # as in a folder that has become read-only
    waiting = page.text_content("#file")
    page.keyboard.press("2")
    page.wait_for_selector("#alert:not([hidden])")
    assert "is the folder read-only" in page.text_content("#alert")
    assert "kept here" in page.text_content("#alert")
    assert page.text_content("#file") != waiting  # the next image is shown meanwhile
    page.reload()  # it is kept beyond that
    page.wait_for_selector("#alert:not([hidden])")
    database.all("PRAGMA query_only = OFF")
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#alert", state="hidden")
    answers = [(row["path"], row["label"]) for row in project.store.answers()]
    assert len(answers) == 2
    assert answers[1] == (waiting, CLASSES[1])
    assert page.evaluate("localStorage.getItem('spinal-outbox')") is None
    project.close()


def test_keys_pressed_while_an_answer_is_on_its_way_are_for_the_image_that_is_seen(
    tmp_path: Path, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    truth = make_pictures(tmp_path / "landscapes", 20, size=160)
    project = open_project(tmp_path / "landscapes", classes=CLASSES, encoder="pixels")
    project.scan()
    page = open_page(serve(project))
    held = []
    page.route("**/api/answers", lambda route: held.append(route))  # the server does not answer yet
    given: dict[str, str] = {}
    for _ in range(3):
        answer(page, truth, given)
    assert project.store.answers() == []
    page.keyboard.press("u")  # waits for its turn
    while len(project.store.answers()) < 3:  # one after the other
        page.wait_for_timeout(50)
        while held:
            held.pop().continue_()
    last = list(given)[-1]
    page.wait_for_function("path => document.getElementById('file').textContent === path", arg=last)
    rows = project.store.answers()
    assert [(row["path"], row["label"]) for row in rows] == list(given.items())
    assert [bool(row["undone"]) for row in rows] == [False, False, True]
    project.close()
