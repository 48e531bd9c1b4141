"""The report of `benchmarks.answers`: accuracy at some numbers of answers, area, labels saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

#: Numbers of answers that the tables have columns for.
SHOWN = (50, 100, 300)
#: The area under a curve is its mean from the first of these to the last.
AREA = (20, 300)
#: Whose curve counts how many random answers would have done as much.
REFERENCE = "random"


def write_report(folder: Path) -> None:
    """Write ``README.md`` from ``results.jsonl``."""
    results = pd.read_json(folder / "results.jsonl", lines=True)
    (folder / "README.md").write_text("\n".join(report(results)) + "\n")


def report(results: pd.DataFrame) -> Iterator[str]:
    """Tables in Markdown: all sets on average, then each set."""
    yield "# What an answer is worth"
    yield ""
    yield "Accuracy in %, mean over seeds (NLL); area: mean accuracy from 20 to 300 answers; saved:"
    yield "random answers that a logistic regression needs for the same accuracy, over ours."
    for (half, wrong), part in results.groupby(["half", "wrong"]):
        cells = [
            row | {"set": name, "contender": contender}
            for (name, contender), group in part.groupby(["set", "contender"])
            for row in [summary(group, part[part.set == name])]
        ]
        table = pd.DataFrame(cells)
        yield from ("", f"## {half} half, {100 * wrong:.0f} % of answers wrong", "")
        numbers = [column for column in table if column not in ("set", "contender")]
        means = table.groupby("contender")[numbers].mean().sort_values("area", ascending=False)
        means["least saved"] = table.groupby("contender")[f"saved {SHOWN[1]}"].min()
        yield from _markdown(means.reset_index())
        for name, rows in table.groupby("set"):
            yield from ("", f"### {name}", "")
            order = rows.sort_values("area", ascending=False)
            yield from _markdown(order[["contender", *numbers]])
    yield ""
    yield f"Seeds: {sorted(results.seed.unique())}. Commits: {sorted(results.commit.unique())}."


def summary(group: pd.DataFrame, of_set: pd.DataFrame) -> dict[str, float]:
    """A contender's row on a set."""
    curve = 100 * group.groupby("answers").accuracy.mean()
    nats = group.groupby("answers").nll.mean()
    reference = 100 * of_set[of_set.contender == REFERENCE].groupby("answers").accuracy.mean()
    row = {"area": area(curve)}
    row |= {f"at {n}": float(curve.get(n, np.nan)) for n in SHOWN}
    row |= {f"NLL {n}": float(nats.get(n, np.nan)) for n in SHOWN}
    for n in SHOWN:
        row[f"saved {n}"] = labels_saved(curve, reference, n)
    return row


def area(curve: pd.Series) -> float:
    """Mean accuracy from the first to the last number of answers of `AREA`, as far as it goes."""
    part = curve.loc[AREA[0] : AREA[1]]
    return float(np.trapezoid(part, part.index) / (part.index[-1] - part.index[0]))


def labels_saved(curve: pd.Series, reference: pd.Series, n: int) -> float:
    """Random answers that reach the accuracy of a curve at n, over n; NaN if n is not reached.

    The reference rises by definition: what more answers lose by chance is not counted. Where it
    never gets there, its last number of answers is taken, which is less than the truth.
    """
    if n not in curve or not len(reference):
        return float("nan")
    rising = reference.cummax()
    reached = rising[rising >= curve[n]]
    if not len(reached):
        return float(reference.index[-1] / n)
    after = reached.index[0]
    before = rising.index[rising.index < after]
    if not len(before) or curve[n] <= rising[before[-1]]:
        return float(after / n)
    start = before[-1]
    share = (curve[n] - rising[start]) / (rising[after] - rising[start])
    return float((start + share * (after - start)) / n)


def _markdown(table: pd.DataFrame) -> Iterator[str]:
    yield "| " + " | ".join(map(str, table.columns)) + " |"
    yield "|---" + "|--:" * (len(table.columns) - 1) + "|"
    for row in table.itertuples(index=False):
        yield "| " + " | ".join(_cell(value) for value in row) + " |"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.2f}"
    return str(value)
