"""Colours of classes: chosen or by place, undoable, and visible on every background of the page."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from spinal.errors import LabelError
from spinal.label.store.classes import describe_change
from spinal.label.store.colours import PALETTE, contrast, luminance, visible
from spinal.label.store.store import Store

#: Backgrounds on which classes are drawn, by their names in the style sheet.
BACKGROUNDS = ("page", "card", "accent-soft")


def backgrounds() -> list[str]:
    style = files("spinal.label.web").joinpath("page", "style.css").read_text()
    found = [c for name in BACKGROUNDS for c in re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style)]
    assert len(found) == 2 * len(BACKGROUNDS)  # light and dark
    return found


def test_luminance_and_contrast_are_those_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # known to just fail AA
    assert luminance("#ff0000") == pytest.approx(0.2126)


def test_every_colour_is_visible_on_every_background() -> None:
    chosen = [
        "#" + "".join(f"{c:02x}" for c in parts) for parts in product((0, 90, 180, 255), repeat=3)
    ]
    for colour in (*PALETTE, *chosen):
        worst = min(contrast(visible(colour), background) for background in backgrounds())
        assert worst >= 3, colour
    assert [visible(colour) for colour in PALETTE] == list(PALETTE)  # as they are written
    assert len(set(PALETTE)) == len(PALETTE)


def test_a_class_keeps_its_colour_when_others_go(tmp_path: Path) -> None:
    store = Store(tmp_path / "labels.sqlite")
    store.classes.begin(("cat", "dog", "owl"))
    before = store.classes.colours()
    assert len({colour for colour, _ in before.values()}) == 3
    store.classes.remove("cat", "ada")
    store.classes.rename("owl", "bird", "ada")
    store.classes.add("fox", "ada")
    after = store.classes.colours()
    assert (after["dog"], after["bird"]) == (before["dog"], before["owl"])
    assert after["fox"] not in (after["dog"], after["bird"])


def test_a_colour_is_chosen_and_undone(tmp_path: Path) -> None:
    store = Store(tmp_path / "labels.sqlite")
    store.classes.begin(("cat", "dog", "owl"))
    usual = store.classes.colours()["dog"]
    store.classes.set_colour("dog", "#D15D21", "ada")
    assert store.classes.colours()["dog"] == ("#d15d21", True)
    store.classes.merge("dog", "cat", "ada")
    store.classes.undo()
    assert store.classes.colours()["dog"] == ("#d15d21", True)
    change = store.classes.undo()
    assert describe_change(change) == "gave dog the colour #d15d21"
    assert store.classes.colours()["dog"] == usual
    for wrong in ("red", "#12345", "#12345g", ""):
        with pytest.raises(LabelError, match="not a colour"):
            store.classes.set_colour("dog", wrong, "ada")
    store.classes.set_colour("dog", "#ffffff", "ada")  # drawn in grey: white could not be seen
    assert store.classes.colours()["dog"][0] == visible("#ffffff")
