"""How it was made: settings, seeds, versions, hardware, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.names import split_name, title
from spinal.report.parts import Section, Table


def section(experiment: Experiment) -> Section:
    """Everything that is known of the runs' making."""
    parts = [_runs(experiment)]
    settings = list(flat(experiment.protocol))
    if settings:
        data = pd.DataFrame(settings, columns=["setting", "value"])
        caption = "Settings of the protocol, as the runs kept them."
        parts.append(Table("settings", caption, data, data, words=2))
    return Section("How it was made", _commands(experiment), parts)


def _runs(experiment: Experiment) -> Table:
    rows = []
    for method in experiment.methods:
        runs = experiment.of(method)
        row = {"method": method, "seeds": ", ".join(str(run.seed) for run in runs)}
        row["labels"] = _several(str(run.last_labels) for run in runs)
        for table in ("versions", "machine"):
            for name in sorted({key for run in runs for key in run.settings.get(table, {})}):
                values = (str(run.settings.get(table, {}).get(name, "")) for run in runs)
                row[name] = _several(values)
        rows.append(row)
    data = pd.DataFrame(rows).fillna("")
    shown = data.assign(method=data["method"].map(title))
    caption = "Runs, the versions that made them, and the machine."
    return Table("runs", caption, data, shown, words=data.shape[1])


def _several(values: Iterator[str]) -> str:
    return ", ".join(sorted(set(values)))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings in tables as pairs of a name, ``table.key``, and a value."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _commands(experiment: Experiment) -> list[str]:
    """The commands that make the same runs, and this report of them."""
    name = experiment.protocol.get("name", experiment.name)
    commands = []
    for method in experiment.methods:
        plain, acquisition = split_name(method)
        seeds = ",".join(str(run.seed) for run in experiment.of(method))
        choice = f" --acquisition {acquisition}" if acquisition else ""
        commands.append(f"`spinal run {name} --method {plain}{choice} --seeds {seeds}`")
    return [*commands, "`spinal report runs`"]
