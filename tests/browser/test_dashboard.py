"""The dashboard in a browser: its numbers open the images that they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spinal.label.store.project import Project

pytestmark = pytest.mark.slow


def test_a_cell_of_the_matrix_opens_its_images(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    page.keyboard.press("Shift+Digit7")
    page.wait_for_selector("#dashboard .matrix")
    assert "Another 50 labels" in page.text_content("#dashboard .advice")
    assert "all images without one" in page.text_content("#dashboard dl")
    cell = page.locator(".matrix button.right").first
    n = int(cell.text_content())
    cell.click()
    page.wait_for_selector("#images .tile")
    assert page.text_content("#found") == f"{n} images"
    assert page.input_value("#filter-label") == page.input_value("#filter-predicted") == "boat"
    page.keyboard.press("Shift+Digit7")
    page.click("#dashboard button.open:has-text('grace')")
    page.wait_for_function("() => document.getElementById('found').textContent === '4 images'")
