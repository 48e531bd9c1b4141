"""Summaries: a line for each method, with paired differences to Random."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from spinal.report.read import area_under_curve

BASELINE = "random"
HEADER = [
    "protocol", "method", "seeds", "area", "gain over random", "accuracy", "of the network",
    "NLL", "ECE", "s a round",
]  # fmt: skip


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """For each protocol and method: area under the curve, final accuracy, time.

    Compared are the rounds and seeds that a method shares with Random: methods are paired, each
    seed having the same initial set and test set for all. ``gain`` is the mean difference in area,
    with its 95 % interval by Student's t, which needs two seeds or more.
    """
    rows = []
    for protocol, of_protocol in runs.groupby("protocol", sort=True):
        areas = {
            method: _areas(rounds) for method, rounds in of_protocol.groupby("method", sort=True)
        }
        for method, area in areas.items():
            of_method = of_protocol[of_protocol["method"] == method]
            last = of_method[of_method["labels"] == of_method["labels"].max()]
            seconds = of_method.filter(like="seconds_").sum(axis=1)
            row = {
                "protocol": protocol,
                "method": method,
                "seeds": len(area),
                "labels": int(of_method["labels"].max()),
                "area": area.mean(),
                "accuracy": last["accuracy"].mean(),
                "accuracy_sd": last["accuracy"].std() if len(last) > 1 else np.nan,
                "network_accuracy": last["network_accuracy"].mean(),
                "nll": last["nll"].mean(),
                "ece": last["ece"].mean(),
                "seconds_a_round": seconds.mean(),
            }
            if BASELINE in areas and method != BASELINE:
                row |= _gain(area, areas[BASELINE])
            rows.append(row)
    return pd.DataFrame(rows)


def _areas(of_method: pd.DataFrame) -> pd.Series:
    """Area under the accuracy curve by seed."""
    by_seed = {}
    for seed, rounds in of_method.groupby("seed"):
        rounds = rounds.sort_values("labels")
        by_seed[seed] = area_under_curve(rounds["labels"].to_numpy(), rounds["accuracy"].to_numpy())
    return pd.Series(by_seed)


def _gain(area: pd.Series, baseline: pd.Series) -> dict[str, float]:
    difference = (area - baseline).dropna()
    if not len(difference):
        return {}
    gain = {"gain": difference.mean()}
    if len(difference) > 1:
        half = stats.t.ppf(0.975, len(difference) - 1) * stats.sem(difference)
        gain |= {"gain_low": gain["gain"] - half, "gain_high": gain["gain"] + half}
    return gain


def to_markdown(summary: pd.DataFrame) -> str:
    """The summary as a Markdown table, for people."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows(summary)]
    return "\n".join(lines) + "\n"


def rows(summary: pd.DataFrame) -> list[list[str]]:
    """The cells of the table, as people read them."""
    table = []
    for row in summary.to_dict("records"):
        gain = ""
        if not np.isnan(row.get("gain", np.nan)):
            gain = f"{100 * row['gain']:+.2f}"
            if not np.isnan(row.get("gain_low", np.nan)):
                gain += f" ({100 * row['gain_low']:+.2f} to {100 * row['gain_high']:+.2f})"
        spread = "" if np.isnan(row["accuracy_sd"]) else f" ± {100 * row['accuracy_sd']:.2f}"
        cells = [
            row["protocol"], row["method"], str(row["seeds"]), f"{100 * row['area']:.2f}", gain,
            f"{100 * row['accuracy']:.2f}{spread} at {row['labels']}",
            f"{100 * row['network_accuracy']:.2f}", f"{row['nll']:.3f}", f"{row['ece']:.3f}",
            f"{row['seconds_a_round']:.1f}",
        ]  # fmt: skip
        table.append(cells)
    return table
