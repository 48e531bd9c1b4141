"""Numbers over all cells: regret, rank, and comparisons with the head and logistic regression."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

CELL = ["set", "tail", "labels"]
METRICS = ["accuracy", "balanced", "nll", "ece", "brier", "seconds"]
#: Contenders in the order of tables and legends.
ORDER = ["spn", "spn-before", "head", "logistic", "gda", "knn", "forest"]


def read_cells(folder: Path) -> pd.DataFrame:
    """Means over seeds of all results in a folder, a row for each cell and contender.

    Of each cell only the seeds are used that all of its contenders have.
    """
    lines = pd.concat([pd.read_json(p, lines=True) for p in sorted(folder.glob("*.jsonl"))])
    lines = lines.drop_duplicates([*CELL, "seed", "contender"], keep="last")
    present = lines.groupby([*CELL, "seed"])["contender"].transform("nunique")
    lines = lines[present == lines.groupby(CELL)["contender"].transform("nunique")]
    cells = lines.groupby(["half", *CELL, "classes", "contender"], as_index=False).agg(
        **{metric: (metric, "mean") for metric in METRICS},
        seeds=("seed", lambda seeds: ", ".join(map(str, sorted(seeds)))),
        commit=("commit", lambda commits: ", ".join(sorted(set(commits)))),
    )
    place = cells["contender"].map({name: i for i, name in enumerate(ORDER)}).fillna(len(ORDER))
    return cells.assign(place=place).sort_values(["place", "half", *CELL]).drop(columns="place")


def wide(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One metric with a row for each cell and a column for each contender."""
    columns = cells["contender"].unique()
    return cells.pivot(index=CELL, columns="contender", values=metric)[columns]


def regret(cells: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """Points below the best contender of each cell, in the form of `wide`."""
    values = 100 * wide(cells, metric)
    return values.rsub(values.max(axis=1), axis=0)


def rank(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The place of each contender in each cell, 1 is best; in the form of `wide`."""
    return wide(cells, metric).rank(axis=1, ascending=metric in ("nll", "ece", "brier"))


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """A row of text for each contender; each over the cells that it has results in."""
    accuracy, nll = wide(cells, "accuracy"), wide(cells, "nll")
    regrets, ranks, likelihood_ranks = regret(cells), rank(cells, "accuracy"), rank(cells, "nll")
    tailed = cells[cells["tail"] > 1]
    balanced = regret(tailed, "balanced") if len(tailed) else None
    ece, seconds = wide(cells, "ece"), wide(cells, "seconds")
    rows = []
    for name in accuracy.columns:
        gap = 100 * (accuracy[name] - accuracy["logistic"]).dropna()
        rows.append({
            "contender": name,
            "cells": accuracy[name].count(),
            "mean regret": f"{regrets[name].mean():.2f}",
            "worst regret": f"{regrets[name].max():.1f}",
            "worst gap to logistic": f"{gap.min():+.1f}",
            "cells > 3 below logistic": (gap < -3).sum(),
            "NLL below head's": _share(nll[name], nll["head"]),
            "NLL below logistic's": _share(nll[name], nll["logistic"]),
            "mean ECE": f"{ece[name].mean():.3f}",
            "mean NLL": f"{nll[name].mean():.3f}",
            "mean rank, accuracy": f"{ranks[name].mean():.2f}",
            "mean rank, NLL": f"{likelihood_ranks[name].mean():.2f}",
            "long-tailed: mean regret, balanced":
                f"{balanced[name].mean():.2f}" if balanced is not None else "",
            "seconds": f"{seconds[name].mean():.1f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def _share(values: pd.Series, others: pd.Series) -> str:
    """In how many percent of the cells a value is below the other."""
    both = pd.concat([values, others], axis=1).dropna()
    if values.name == others.name or both.empty:
        return "–"
    return f"{100 * (both.iloc[:, 0] < both.iloc[:, 1]).mean():.0f} %"
