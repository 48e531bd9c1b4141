"""The tables of `benchmarks.afternoon`."""

from __future__ import annotations

import pytest

from benchmarks.afternoon_report import CLICK, KEY, Step, steps_table, summary_table, total

STEPS = [
    Step("start", characters=20, wait=3.0, processor=2.0),
    Step("label", keys=5, wait=0.5, processor=9.0, answers=5),
]


def cells(table: str) -> dict[str, list[str]]:
    """The cells of each row, by the first one that is not empty."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {row[0] or row[1]: row for row in rows}


def test_the_table_of_steps_ends_with_their_sum() -> None:
    rows = cells(steps_table([*STEPS, Step("export", clicks=2, wait=1.5, processor=1.0)]))
    assert rows["2"] == ["2", "label", "0", "5", "0", "0.5", "0.5"]
    assert rows["**total**"] == ["", "**total**", "2", "5", "20", "3.5", "5.0"]


def test_seconds_to_click_press_and_type() -> None:
    assert total([*STEPS, Step("export", clicks=2)]).hands() == pytest.approx(2 * CLICK + 25 * KEY)


def test_minutes_are_those_to_wait_think_and_type() -> None:
    other = Step("label", clicks=3, wait=60.0, processor=70.0, answers=5)
    runs = {"one": STEPS, "other": [other]}
    rows = cells(summary_table(runs, {"one": 0.75, "other": 0.5}, think=2.0))
    assert rows["think, s"] == ["think, s", "10", "10"]
    minutes = [(2.5 + 10 + 25 * KEY) / 60, (60 + 10 + 3 * CLICK) / 60]
    assert rows["**all, minutes**"][1:] == [f"**{m:.1f}**" for m in minutes]
    assert rows["**accuracy of the model, %**"][1:] == ["**75.0**", "**50.0**"]
