"""The paper's tables, with the names of runs used here; see the README beside them."""

from __future__ import annotations

from functools import cache
from importlib import resources

import pandas as pd

_ACQUISITIONS = {"max": "max-entropy", "var": "variation-ratio"}


@cache
def accuracies() -> pd.DataFrame:
    """Columns: table, method, labels, accuracy, deviation; the last two as fractions."""
    printed = _read("accuracy.csv")
    chosen = printed["acquisition"].fillna("")
    method = [f"{m}-{a}" if a else m for m, a in zip(printed["method"], chosen, strict=True)]
    return pd.DataFrame(
        {
            "table": printed["protocol"],
            "method": method,
            "labels": printed["labels"],
            "accuracy": printed["accuracy_percent"] / 100,
            "deviation": printed["std_percent"] / 100,
        }
    )


@cache
def run_times() -> pd.DataFrame:
    """Columns: table, method, seconds (of a complete run)."""
    long = _read("run_time_seconds.csv").melt("dataset", var_name="method", value_name="seconds")
    long["method"] = long["method"].str.replace("_", "-")
    return long.rename(columns={"dataset": "table"})


@cache
def p_values() -> pd.DataFrame:
    """Columns: table, method, competitor, initial_set (0 to 4, or ``mean``), labels, p_value."""
    printed = _read("p_values.csv")
    table = printed["dataset"].str.replace("cifar-10", "cifar10")
    mixed = printed["method"].str.contains("batchbald")
    return pd.DataFrame(
        {
            "table": table + mixed.map({True: "-batchbald", False: ""}),
            "method": printed["method"].map(_run_name),
            "competitor": printed["competitor"].map(_run_name),
            "initial_set": printed["initial_set"].str.split().str[-1].replace("result", "mean"),
            "labels": printed["labels"],
            "p_value": printed["p_value"],
        }
    )


def table_names() -> list[str]:
    """The tables of accuracies, which a protocol's ``paper`` may name."""
    return list(accuracies()["table"].unique())


def _run_name(printed: str) -> str:
    """``mc dropout var ratio`` and ``mc-dropout var ratio`` are both mc-dropout-variation-ratio."""
    words = printed.replace("-", " ").split()
    for short, acquisition in _ACQUISITIONS.items():
        if short in words:
            return "-".join([*words[: words.index(short)], acquisition])
    return "-".join(words)


def _read(name: str) -> pd.DataFrame:
    with (resources.files(__name__) / name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
