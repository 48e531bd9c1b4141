"""Common parts of tables of tests: the budgets, and corrections for multiple tests."""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.paper import p_values
from spinal.report.statistics import holm

LEVEL = 0.05
_BUDGETS = 10


def budgets(experiment: Experiment) -> list[int]:
    """The budgets at which to test: the paper's, if any, otherwise ten, evenly spaced."""
    labels = experiment.labels
    printed = p_values()
    theirs = printed[printed["table"] == experiment.paper]["labels"].unique()
    chosen = labels[np.isin(labels, theirs)]
    if len(chosen):
        return chosen.tolist()
    return labels[np.unique(np.linspace(0, len(labels) - 1, _BUDGETS).round().astype(int))].tolist()


def add_holm(data: pd.DataFrame, within: list[str]) -> None:
    """Add Holm's corrections of ``p_value``: ``holm`` per comparison, ``holm_all`` over the table.

    Args:
        data: One row per test, with ``method`` and ``competitor``; changed in place.
        within: Columns whose values separate families of tests.
    """
    for name, family in (("holm", ["method", "competitor", *within]), ("holm_all", within)):
        groups = data.groupby(family or (lambda _: 0))["p_value"]
        data[name] = groups.transform(lambda p: holm(p.tolist()))


def stars(comparison: float, table: float) -> str:
    """One star if significant after correction for its comparison, two for the complete table."""
    return " **" if table < LEVEL else " *" if comparison < LEVEL else ""
