"""The origin of runs: settings, seeds, versions, hardware, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.names import split_name, title
from spinal.report.parts import Section, Table
from spinal.report.read import StoredRun

#: Stored facts on the origin of runs, in the order of display; older runs have fewer.
_KEPT = ("spinal", "commit", "python", "torch", "numpy", "processor", "system")


def section(experiment: Experiment) -> Section:
    """All stored facts on the origin of the runs."""
    parts = _runs(experiment)
    settings = list(flat(experiment.protocol))
    if settings:
        data = pd.DataFrame(settings, columns=["setting", "value"])
        caption = "Settings of the protocol, as the runs kept them."
        parts.append(Table("settings", caption, data, data, words=2))
    return Section("Commands and versions", _commands(experiment), parts)


def _runs(experiment: Experiment) -> list[Table]:
    """A table of the runs with their origin, and a table of the facts that all runs share."""
    rows = []
    for method in experiment.methods:
        runs = experiment.of(method)
        row = {"method": method, "seeds": ", ".join(str(run.seed) for run in runs)}
        row["labels"] = _several(str(run.last_labels) for run in runs)
        rows.append(row | _makers(runs))
    data = pd.DataFrame(rows).fillna("")
    columns = [name for name in _KEPT if name in data]
    columns += sorted(set(data.columns[3:]) - set(columns))
    data = data[[*data.columns[:3], *columns]]
    alike = [name for name in columns if data[name].nunique() == 1]
    shown = data.assign(method=data["method"].map(title)).drop(columns=alike)
    caption = "Runs, and in what their making differed, if it did."
    tables = [Table("runs", caption, data, shown, words=shown.shape[1])]
    if alike:
        pairs = [(name, data[name].iloc[0]) for name in alike]
        common = pd.DataFrame(pairs, columns=["made with", "value"])
        caption = "Versions, commit of spinal and machine of all runs."
        tables.append(Table("made-with", caption, common, common, words=2))
    return tables


def _makers(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Versions and machines of these runs, with all values that occurred in any round."""
    makers = []
    for run in runs:
        for tables in (*run.settings.get("earlier", []), run.settings):
            maker = {**tables.get("versions", {}), **tables.get("machine", {})}
            changed = " with changes" if maker.pop("changed", False) else ""
            if "commit" in maker:
                maker["commit"] = f"{maker['commit'][:9]}{changed}"
            makers.append(maker)
    names = {name for maker in makers for name in maker}
    return {name: _several(str(maker.get(name, "not kept")) for maker in makers) for name in names}


def _several(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings in tables as pairs of a name, ``table.key``, and a value."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _commands(experiment: Experiment) -> list[str]:
    """The commands that produce the same runs and this report."""
    name = experiment.protocol.get("name", experiment.name)
    name = re.sub(r"(.+)-(paper|tuned)-spn", r"\1 --spn \2", name)  # see `with_spn`
    commands = []
    for method in experiment.methods:
        plain, acquisition = split_name(method)
        seeds = ",".join(str(run.seed) for run in experiment.of(method))
        choice = f" --acquisition {acquisition}" if acquisition else ""
        commands.append(f"`spinal run {name} --method {plain}{choice} --seeds {seeds}`")
    return [*commands, "`spinal report runs`"]
