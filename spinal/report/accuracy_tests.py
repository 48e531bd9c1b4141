"""Tests from accuracies alone, as in the paper: ours, and the paper's own, recomputed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.families import add_holm, budgets, stars
from spinal.report.names import comparisons, title
from spinal.report.numbers import count, p_value
from spinal.report.paper import accuracies, p_values
from spinal.report.parts import Table
from spinal.report.statistics import two_proportion_z_test

#: Number of test points in the paper's tests, for all datasets.
PAPER_POINTS = 10_000
_OURS, _AGAIN, _PRINTED = "ours", "paper, from its accuracies", "paper, as printed"


def accuracy_tests(experiment: Experiment) -> Table | None:
    """One-sided unpaired z-tests of mean accuracies at each budget; None if there are none.

    Holm's corrections are over our own tests.
    """
    data = pd.DataFrame(_ours(experiment))
    if len(data):
        add_holm(data, [])
    printed = pd.DataFrame(_printed(experiment))
    data = pd.concat([data, printed], ignore_index=True)
    if data.empty:
        return None
    caption = (
        "One-sided p-values of unpaired z-tests, from mean accuracies alone: is the first method "
        "more accurate than the second, at this number of labels? One star: Holm's correction over "
        "the row; two: over all rows of ours."
    )
    if len(printed):
        matches = agreement(printed)
        caption += (
            f" The paper's tests are of this kind: of the {count(len(matches))} p-values that it "
            f"printed for means, {count(matches.sum())} are within 0.01 of what its accuracies "
            f"give with {count(PAPER_POINTS)} test points."
        )
    return Table("accuracy-tests", caption, data, _shown(data), words=2)


def agreement(printed: pd.DataFrame) -> pd.Series:
    """Which of the paper's printed p-values are within 0.01 of p-values from its accuracies."""
    keys = ["method", "competitor", "labels"]
    by_source = printed.pivot(index=keys, columns="source", values="p_value")
    # Printed to two decimals.
    return (by_source[_AGAIN].round(2) - by_source[_PRINTED]).abs() < 0.0101


def _ours(experiment: Experiment) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    n = {run.test_points() for run in experiment.runs}
    points = n.pop() if len(n) == 1 else None
    if points is None:
        return rows
    for first, second in comparisons(experiment.methods):
        for labels in budgets(experiment):
            at_budget = experiment.accuracy.loc[labels]
            pairs = pd.concat([at_budget[first], at_budget[second]], axis=1).dropna()
            if len(pairs):
                one, other = pairs.mean()
                rows.append({
                    "method": first, "competitor": second, "source": _OURS, "labels": labels,
                    "p_value": two_proportion_z_test(one, other, points),
                })  # fmt: skip
    return rows


def _printed(experiment: Experiment) -> list[dict[str, object]]:
    """The paper's tests of means for this table, as printed and from its accuracies."""
    if experiment.predictor == "network":
        return []
    means = p_values()
    means = means[(means["table"] == experiment.paper) & (means["initial_set"] == "mean")]
    accuracy = accuracies().set_index(["table", "method", "labels"])["accuracy"]
    rows: list[dict[str, object]] = []
    for test in means.itertuples():
        one, other = (
            accuracy[test.table, name, test.labels] for name in (test.method, test.competitor)
        )
        again = two_proportion_z_test(one, other, PAPER_POINTS)
        for source, value in ((_AGAIN, again), (_PRINTED, test.p_value)):
            rows.append({
                "method": test.method, "competitor": test.competitor, "source": source,
                "labels": test.labels, "p_value": value,
            })  # fmt: skip
    return rows


def _shown(data: pd.DataFrame) -> pd.DataFrame:
    columns = [count(labels) for labels in sorted(data["labels"].unique())]
    rows = []
    for (first, second), tests in data.groupby(["method", "competitor"], sort=False):
        for source, cells in tests.groupby("source", sort=False):
            lead = {"is better than": f"{title(first)} > {title(second)}", "": str(source)}
            values = {count(t.labels): _cell(t) for t in cells.itertuples()}
            rows.append({**lead, **values})
    return pd.DataFrame(rows, columns=["is better than", "", *columns]).fillna("")


def _cell(test: Any) -> str:
    if test.source == _PRINTED:
        return f"{test.p_value:.2f}"
    return p_value(test.p_value) + stars(
        getattr(test, "holm", np.nan), getattr(test, "holm_all", np.nan)
    )
