"""The report on paper: dark on no printer, and nothing folded away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spinal.report.page import page
from spinal.report.parts import Section, Table

pytestmark = pytest.mark.slow


def test_folded_tables_are_open_and_colours_light_in_print(chromium: Any, tmp_path: Path) -> None:
    shown = pd.DataFrame({"method": [f"method {i}" for i in range(60)], "p": "0.5"})
    table = Table("long", "A long table.", shown, shown)
    file = tmp_path / "index.html"
    file.write_text(page([("one", "One", [Section("Long", (), [table])])]), encoding="utf-8")
    tab = chromium.new_page(color_scheme="dark")
    tab.goto(file.as_uri())
    last, fold = tab.get_by_text("method 59"), tab.get_by_text("60 rows")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert not last.is_visible()
    assert fold.is_visible()
    assert tab.evaluate(ground) != "rgb(255, 255, 255)"
    tab.emulate_media(media="print", color_scheme="dark")
    assert last.is_visible()
    assert last.bounding_box()["height"] > 5
    assert not fold.is_visible()
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    tab.close()
