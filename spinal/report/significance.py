"""Significance of differences: over test points, as in the paper, and over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from spinal.report.accuracy_tests import accuracy_tests
from spinal.report.experiment import Experiment, paired
from spinal.report.families import LEVEL, add_holm, budgets, stars
from spinal.report.names import comparisons, title
from spinal.report.numbers import count, p_value, points
from spinal.report.paper import p_values
from spinal.report.parts import Section, Table
from spinal.report.statistics import (
    MIN_SEEDS,
    Outcomes,
    mcnemar_test,
    paired_t_test,
    z_test,
)

_MEAN = "mean"


def section(experiment: Experiment) -> Section | None:
    """All tests that the runs allow; None if they allow none."""
    tables = [
        z_tests(experiment), accuracy_tests(experiment), mcnemar_tests(experiment),
        area_tests(experiment),
    ]  # fmt: skip
    parts = [table for table in tables if table is not None]
    if not parts:
        return None
    text = [
        "Tests over test points ask whether these classifiers differ, and take what they were "
        "trained on as given; tests over seeds ask whether the methods do. A star: still below "
        f"{LEVEL} after Holm's correction over the tests of the same comparison; two stars: after "
        "that over all tests of the table."
    ]
    if parts[-1].name != "area-tests":
        text.append(f"Tests over seeds need {MIN_SEEDS} seeds or more of both methods.")
    return Section("Significance tests", text, parts)


def z_tests(experiment: Experiment) -> Table | None:
    """Paired one-sided z-tests, for each budget and initial set, and over all of them.

    Holm's correction is over the budgets of a comparison, and over all comparisons and budgets, for
    each initial set and for the mean.
    """
    rows = []
    for first, second in comparisons(experiment.methods):
        for labels in budgets(experiment):
            pairs = _pairs(experiment, first, second, labels)
            sets: dict[str, list[tuple[Outcomes, Outcomes]]] = {
                str(seed): [pair] for seed, pair in pairs.items()
            }
            if len(pairs) > 1:
                sets[_MEAN] = list(pairs.values())
            rows += [
                {"method": first, "competitor": second, "initial_set": name, "labels": labels,
                 "p_value": z_test(outcomes)}
                for name, outcomes in sets.items()
            ]  # fmt: skip
    if not rows:
        return None
    data = pd.DataFrame(rows)
    add_holm(data, ["initial_set"])
    data = data.merge(_printed(experiment), how="left")
    caption = (
        "One-sided p-values of paired z-tests over test points: is the first method more accurate "
        "than the second, at this number of labels? For each initial set (seed), and averaged over "
        "them. One star: Holm's correction over the row; two: over all rows of the same initial "
        "set."
    )
    return Table("z-tests", caption, data, _z_shown(data), words=2)


def _z_shown(data: pd.DataFrame) -> pd.DataFrame:
    shown = []
    for (first, second, name), tests in data.groupby(
        ["method", "competitor", "initial_set"], sort=False
    ):
        lead = {"is better than": f"{title(first)} > {title(second)}", "set": str(name)}
        cells = {
            count(t.labels): p_value(t.p_value) + stars(t.holm, t.holm_all)
            for t in tests.itertuples()
        }
        shown.append({**lead, **cells})
        if name == _MEAN and tests["paper_p_value"].notna().any():
            theirs = {count(t.labels): p_value(t.paper_p_value) for t in tests.itertuples()}
            shown.append({**lead, "set": "paper's mean", **theirs})
    return pd.DataFrame(shown).fillna("")


def _printed(experiment: Experiment) -> pd.DataFrame:
    """The paper's p-values, to compare with ours."""
    printed = p_values()
    printed = printed[printed["table"] == experiment.paper].drop(columns="table")
    return printed.rename(columns={"p_value": "paper_p_value"})


def _pairs(
    experiment: Experiment, first: str, second: str, labels: int
) -> dict[int, tuple[Outcomes, Outcomes]]:
    """Outcomes of two methods on the same test points, for each seed that has both."""
    ones = {run.seed: run.outcomes(labels) for run in experiment.of(first)}
    others = {run.seed: run.outcomes(labels) for run in experiment.of(second)}
    pairs = {}
    for seed in sorted(ones.keys() & others.keys()):
        one, other = ones[seed], others[seed]
        if one is not None and other is not None and np.array_equal(one.indices, other.indices):
            pairs[seed] = one, other
    return pairs


def _table(
    name: str, caption: str, rows: list[dict[str, Any]], cells: list[dict[str, str]], words: int
) -> Table | None:
    """A table of tests, with Holm's corrections; None if there are none.

    Args:
        name: Name of the table.
        caption: Caption of the table.
        rows: One row per test, with ``method``, ``competitor`` and ``p_value``.
        cells: For each test, the cells between the two methods and the p-value.
        words: Number of columns that hold words.
    """
    if not rows:
        return None
    data = pd.DataFrame(rows)
    add_holm(data, [])
    shown = [
        {
            "first and second": f"{title(t.method)}, {title(t.competitor)}",
            **between,
            "p": p_value(t.p_value),
            "Holm, comparison": p_value(t.holm),
            "Holm, all": p_value(t.holm_all) + stars(t.holm, t.holm_all),
        }
        for t, between in zip(data.itertuples(), cells, strict=True)
    ]
    return Table(name, caption, data, pd.DataFrame(shown), words)


def mcnemar_tests(experiment: Experiment) -> Table | None:
    """McNemar's exact test at the last budget, for each seed."""
    labels = int(experiment.labels[-1])
    rows: list[dict[str, Any]] = []
    for first, second in comparisons(experiment.methods):
        for seed, (one, other) in _pairs(experiment, first, second, labels).items():
            rows.append({
                "method": first, "competitor": second, "seed": seed, "labels": labels,
                "only_method_right": int((one.right & ~other.right).sum()),
                "only_competitor_right": int((other.right & ~one.right).sum()),
                "p_value": mcnemar_test(one, other),
            })  # fmt: skip
    cells = [
        {
            "seed": str(row["seed"]),
            "only first right": count(row["only_method_right"]),
            "only second right": count(row["only_competitor_right"]),
        }
        for row in rows
    ]
    caption = (
        f"McNemar's exact test, two-sided, at {count(labels)} labels: test points that one of the "
        "two got right and the other did not. Holm's correction is over the seeds of a comparison, "
        "and over the complete table."
    )
    return _table("mcnemar", caption, rows, cells, words=2)


def area_tests(experiment: Experiment) -> Table | None:
    """Student's paired test of the areas under the curve, over seeds; needs `MIN_SEEDS`."""
    rows: list[dict[str, Any]] = []
    for first, second in comparisons(experiment.methods):
        differences = paired(experiment.areas, first, second)
        if len(differences) >= MIN_SEEDS:
            rows.append({
                "method": first, "competitor": second, "seeds": len(differences),
                "difference": differences.mean(), "p_value": paired_t_test(differences),
            })  # fmt: skip
    cells = [
        {"seeds": str(row["seeds"]), "difference in area": points(row["difference"])}
        for row in rows
    ]
    caption = (
        "Student's paired test of areas under the accuracy curve, two-sided, over seeds: the first "
        "method's minus the second's, in percentage points. A comparison is one test here; Holm's "
        "correction for all is over the table."
    )
    return _table("area-tests", caption, rows, cells, words=1)
