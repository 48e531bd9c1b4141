"""Summaries: one row per method, with paired differences to Random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from spinal.report.experiment import Experiment, gain
from spinal.report.names import BASELINE

HEADER = [
    "protocol", "method", "seeds", "area", "gain over random", "accuracy", "of the network",
    "of logistic regression", "NLL", "ECE", "s a round",
]  # fmt: skip


def summarise(experiments: Sequence[Experiment]) -> pd.DataFrame:
    """For each protocol and method: area under the curve, final accuracy, time.

    Areas and final accuracies are the same as on the page, over the budgets that all methods share.
    ``gain`` is the mean difference in area to Random over paired seeds, with its 95 % interval by
    Student's t, which needs three seeds or more.
    """
    return pd.DataFrame([_row(e, method) for e in experiments for method in sorted(e.methods)])


def _row(experiment: Experiment, method: str) -> dict[str, Any]:
    last = int(experiment.labels[-1])
    runs = experiment.of(method)
    at_end = [run.at(last) for run in runs]
    seconds = [sum(r.seconds.values()) for run in runs for r in run.rounds if r.labels <= last]
    row = {
        "protocol": experiment.name,
        "method": method,
        "seeds": len(runs),
        "labels": last,
        "area": experiment.areas[method].mean(),
        "accuracy": experiment.final[method].mean(),
        "accuracy_sd": experiment.final[method].std(),
        "network_accuracy": np.mean([record.network_accuracy for record in at_end]),
        "logistic_accuracy": _mean([record.logistic_accuracy for record in at_end]),
        "nll": np.mean([record.nll for record in at_end]),
        "ece": np.mean([record.ece for record in at_end]),
        "seconds_a_round": np.mean(seconds),
    }
    if experiment.has_baseline and method != BASELINE:
        row["gain"], row["gain_low"], row["gain_high"] = gain(experiment.areas, method)
    return row


def _mean(values: Sequence[float | None]) -> float:
    """The mean; NaN if one was not stored."""
    return float(np.mean([np.nan if value is None else value for value in values]))


def to_markdown(summary: pd.DataFrame) -> str:
    """The summary as a Markdown table."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows(summary)]
    return "\n".join(lines) + "\n"


def rows(summary: pd.DataFrame) -> list[list[str]]:
    """The formatted cells of the table."""
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
            f"{100 * row['network_accuracy']:.2f}",
            "" if np.isnan(row["logistic_accuracy"]) else f"{100 * row['logistic_accuracy']:.2f}",
            f"{row['nll']:.3f}", f"{row['ece']:.3f}", f"{row['seconds_a_round']:.1f}",
        ]  # fmt: skip
        table.append(cells)
    return table
