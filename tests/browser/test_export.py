"""Downloads from the page, and a photograph that is dropped on it."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from spinal.label.store.project import Project
from spinal.label.web import trying

pytestmark = pytest.mark.slow

DROP = """([name, content]) => {
    const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], name, {type: "image/png"}));
    for (const kind of ["dragover", "drop"]) {
        document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
    }
}"""  # noqa: E501


def test_a_table_is_downloaded(
    project: Project, serve: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(serve(project))
    page.keyboard.press("Shift+Digit8")
    with page.expect_download(timeout=300_000) as download:
        page.click("[data-format=csv]")
    rows = csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8")))
    labels = {row["path"]: row["label"] for row in project.store.labelled()}
    assert {row["path"]: row["label"] for row in rows} == labels
    page.wait_for_selector("#export-note:has-text('labels.csv')")
    assert "4 images on which people disagree" in page.text_content("#export-note")


def test_a_photograph_is_dropped(
    project: Project,
    serve: Callable[..., str],
    open_page: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the model says is checked in ``tests/label/web/test_trying.py``."""
    received: list[bytes] = []

    def predict(_: object, content: bytes) -> dict[str, Any]:
        received.append(content)
        return {"classes": ["boat", "house"], "probs": [0.1, 0.9], "density_rank": 0.0}

    monkeypatch.setattr(trying.Trying, "_predict", predict)
    packed = io.BytesIO()
    Image.new("RGB", (60, 40), (200, 90, 40)).save(packed, "PNG")
    page = open_page(serve(project))
    page.evaluate(DROP, ["holiday.png", base64.b64encode(packed.getvalue()).decode()])
    page.wait_for_selector("#trial .figure:has-text('house')")
    assert received == [packed.getvalue()]
    assert "Unlike anything seen" in page.text_content("#trial")
    assert page.locator("#trial canvas").get_attribute("width") == "60"
    page.set_input_files("#photo", {"name": "b.png", "mimeType": "image/png", "buffer": b"odd"})
    page.wait_for_selector("#trial:has-text('b.png')")
    assert page.locator("#trial canvas").count() == 0
