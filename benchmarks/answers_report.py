"""The report of `benchmarks.answers`: accuracy at some numbers of answers, area, labels saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from spinal.report.plots import STYLE, new_figure, save

#: Numbers of answers that the tables have columns for.
SHOWN = (50, 100, 300)
#: The area under a curve is its mean from the first of these to the last.
AREA = (20, 300)
#: Whose curve counts how many random answers would have done as much.
REFERENCE = "random"
#: Whose curves are compared set by set: within a standard error over seeds they are level.
OURS, RIVAL = "spinal", "margin"


#: Contenders in pictures: colour and line.
LOOK = {
    "spinal": ("#0072b2", "-"),
    "spinal, labels alone": ("#0072b2", (0, (4, 2))),
    "spinal, random": ("#0072b2", (0, (1, 1.5))),
    "typiclust": ("#009e73", "-"),
    "margin": ("#d55e00", "-"),
    "random": ("#6e6e6e", "-"),
    "scikit-activeml: BADGE": ("#c0669a", "-"),
    "small-text: breaking ties": ("#c0669a", (0, (4, 2))),
}
#: Features of texts, the end of the name of a set.
TEXTS = ("--tfidf-svd", "--sentences")


def write_report(folder: Path) -> None:
    """Write ``README.md`` and pictures from ``results.jsonl``."""
    results = pd.read_json(folder / "results.jsonl", lines=True)
    (folder / "README.md").write_text("\n".join(report(results)) + "\n")
    for (half, wrong), part in results.groupby(["half", "wrong"]):
        save(picture(part), folder / _picture_name(str(half), float(wrong)))
    save(picture(_of_texts(results)), folder / "texts.svg")


def picture(results: pd.DataFrame) -> Figure:
    """Accuracy over the answers, a panel for each set."""
    sets = sorted(results.set.unique())
    columns = min(4, len(sets))
    rows = -(-len(sets) // columns)
    with mpl.rc_context(STYLE):
        figure = new_figure(1.2 + 2.6 * columns, 0.8 + 2.4 * rows)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(sets) :]:
            axes.set_visible(False)
        for axes, name in zip(grid.flat, sets, strict=False):
            of_set = results[(results.set == name) & (results.answers <= AREA[1])]
            for contender, (colour, dashes) in LOOK.items():
                part = of_set[of_set.contender == contender]
                if len(part):
                    curve = 100 * part.groupby("answers").accuracy.mean()
                    axes.plot(curve.index, curve, color=colour, ls=dashes, label=contender)
            axes.set_title(name, loc="left", fontsize=9)
            axes.set_xscale("log")
            axes.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
            axes.xaxis.set_minor_locator(NullLocator())
        figure.supxlabel("answers")
        figure.supylabel("accuracy (%)")
        lines = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
        named = [name for name in LOOK if name in lines]
        handles = [lines[name] for name in named]
        figure.legend(handles, named, loc="outside upper center", ncols=4)
    return figure


def _picture_name(half: str, wrong: float) -> str:
    return f"{half}-{100 * wrong:.0f}-wrong.svg"


def report(results: pd.DataFrame) -> Iterator[str]:
    """Tables in Markdown: all sets on average, spinal on each set, all contenders on each set."""
    yield "# What an answer is worth"
    yield ""
    yield "Simulated persons label pools of frozen features (`python -m benchmarks.answers`)."
    yield "Accuracy in %, mean over seeds. *Area*: mean accuracy from 20 to 300 answers. *Saved*:"
    yield "random answers that a logistic regression needs for the same accuracy, over ours; where"
    yield "1,500 of them, or all of a small pool, do not suffice, they count: the truth is more."
    yield "All contenders but spinal choose for logistic regression."
    for (half, wrong), part in results.groupby(["half", "wrong"]):
        yield from ("", f"## {half} half, {100 * wrong:.0f} % of answers wrong", "")
        yield f"![Accuracy over the answers]({_picture_name(str(half), float(wrong))})"
        table = by_set(part)
        means = on_average(table)
        numbers = [column for column in table if column not in ("set", "contender", "seeds")]
        beliefs = [column for column in numbers if column.startswith(("NLL", "ECE"))]
        yield ""
        yield from _markdown(means.drop(columns=beliefs))
        yield ""
        yield from _markdown(means[["contender", *beliefs]])
        yield from (
            "",
            f"{OURS} on each set, and its area less that of `{RIVAL}`, paired seeds:",
            "",
        )
        ours = table[table.contender == OURS].drop(columns=["contender", *beliefs])
        rivals = [against_rival(part[part.set == name]) for name in ours.set]
        yield from _markdown(ours.assign(**{f"over {RIVAL}": rivals}))
        yield from ("", "<details><summary>All contenders on each set</summary>", "")
        order = table.sort_values(["set", "area"], ascending=[True, False])
        yield from _markdown(order[["set", "contender", "seeds", *numbers]])
        yield from ("", "</details>")
    yield from ("", "## Texts, no answer wrong", "", "![Accuracy over the answers](texts.svg)")
    texts = _of_texts(results)
    for title, part in (
        ("The report half, on which no setting was chosen", texts[texts.half == "report"]),
        ("Both halves; settings were chosen on the sets of the develop half", texts),
    ):
        table = by_set(part)
        means = on_average(table)
        columns = [column for column in means if not column.startswith(("NLL", "ECE"))]
        yield from ("", f"{title}:", "")
        yield from _markdown(means.loc[means.sets == table.set.nunique(), columns])
    yield ""
    seeds, commits = (", ".join(map(str, sorted(results[c].unique()))) for c in ("seed", "commit"))
    yield f"Seeds: {seeds}. Commits: {commits}."


def by_set(results: pd.DataFrame) -> pd.DataFrame:
    """A row for each set and contender: number of seeds, and `summary`."""
    return pd.DataFrame([
        {"set": name, "contender": contender, "seeds": group.seed.nunique()}
        | summary(group, results[results.set == name])
        for (name, contender), group in results.groupby(["set", "contender"])
    ])  # fmt: skip


def on_average(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `by_set` as means over sets, the contender with the largest area first."""
    by_contender = table.groupby("contender")
    means = by_contender[[c for c in table if c not in ("set", "contender", "seeds")]].mean()
    means.insert(0, "sets", by_contender.size())
    means.insert(1, "seeds", by_contender["seeds"].min())
    for n in SHOWN[1:]:
        means[f"least saved {n}"] = by_contender[f"saved {n}"].min()
    return means.sort_values("area", ascending=False).reset_index()


def _of_texts(results: pd.DataFrame) -> pd.DataFrame:
    return results[results.set.str.endswith(TEXTS) & (results.wrong == 0)]


def against_rival(of_set: pd.DataFrame) -> str:
    """The area of spinal less that of `RIVAL`, with its standard error over paired seeds."""
    areas = {
        contender: pd.Series({
            seed: area(100 * group.set_index("answers").accuracy)
            for seed, group in of_set[of_set.contender == contender].groupby("seed")
        })
        for contender in (OURS, RIVAL)
    }  # fmt: skip
    difference = (areas[OURS] - areas[RIVAL]).dropna()
    if len(difference) < 2:
        return ""
    mean, error = difference.mean(), difference.sem()
    verdict = "ahead" if mean > error else "behind" if mean < -error else "level"
    return f"{mean:+.2f} ± {error:.2f}, {verdict}"


def summary(group: pd.DataFrame, of_set: pd.DataFrame) -> dict[str, float]:
    """A contender's row on a set."""
    curve = 100 * group.groupby("answers").accuracy.mean()
    nats, ece = (group.groupby("answers")[key].mean() for key in ("nll", "ece"))
    reference = 100 * of_set[of_set.contender == REFERENCE].groupby("answers").accuracy.mean()
    row = {"area": area(curve)}
    row |= {f"at {n}": float(curve.get(n, np.nan)) for n in SHOWN}
    row |= {f"NLL {n}": float(nats.get(n, np.nan)) for n in SHOWN}
    row |= {f"ECE {n}": float(ece.get(n, np.nan)) for n in SHOWN}
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
