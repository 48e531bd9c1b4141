"""Tuning: settings of a protocol, chosen on the validation set and written as a protocol file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from spinal import __version__
from spinal.data import load_dataset
from spinal.errors import SpinalError
from spinal.experiments.protocol import Protocol
from spinal.experiments.scales import merged
from spinal.experiments.tuning.searches import Search, Tried, best_first
from spinal.experiments.tuning.trials import (
    Outcome,
    Part,
    Setting,
    Trial,
    Trials,
    open_trials,
    training_split,
)
from spinal.settings import to_mapping

#: In the order of tuning: a circuit is tuned on the features of the best network.
PARTS: tuple[Part, ...] = ("network", "circuit")


@dataclass(frozen=True)
class TunedPart:
    """The result of tuning one part.

    Attributes:
        part: the part.
        search: the search, described in one line.
        before: the protocol's values of the tuned settings; a missing key means that the protocol
            uses the default of the network.
        own: the result with the protocol's own settings; its ``setting`` is empty.
        tried: all results, best first, including ``own``.
    """

    part: Part
    search: str
    before: Setting
    own: Tried
    tried: Sequence[Tried]

    @property
    def best(self) -> Tried:
        """The best setting."""
        return self.tried[0]


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    Attributes:
        protocol: the protocol with the best settings.
        parts: the results of each part.
        labels: number of labelled points in each trial.
        n_validation: number of validation points.
        seeds: every setting was tried with each of them.
    """

    protocol: Protocol
    parts: Sequence[TunedPart]
    labels: int
    n_validation: int
    seeds: Sequence[int]


@dataclass(frozen=True)
class Step:
    """A finished trial, number ``done`` of ``total`` of a part; from the file, or new."""

    part: Part
    done: int
    total: int
    trial: Trial
    outcome: Outcome
    is_new: bool


def tune(
    protocol: Protocol,
    search: Search,
    path: Path,
    *,
    parts: Sequence[Part] = PARTS,
    labels: int | None = None,
    seeds: Sequence[int] = (0, 1),
    workers: int = 0,
    data_dir: str | Path | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Tuned:
    """Choose settings by their mean accuracy on the validation set. The test set is not read.

    The protocol's own settings are tried too, so the result is never worse than they are on the
    validation set.

    Args:
        protocol: the protocol to tune.
        search: chooses the settings to try.
        path: the file of trials; trials in it are not repeated.
        parts: the parts to tune; the circuit is tuned on the features of the best network.
        labels: number of labels; by default, half of the protocol's budget.
        seeds: every setting is tried with each of them.
        workers: number of parallel trials; 0 for one per core.
        data_dir: the first folder to search for datasets.
        on_step: called after every trial.

    Raises:
        SpinalError: if the protocol has too few points, or another process uses ``path``.
    """
    labels = default_labels(protocol) if labels is None else labels
    # Downloads once, before the workers start.
    dataset = load_dataset(protocol.dataset, data_dir, data=protocol.data)
    n_validation = len(training_split(protocol, dataset, labels, seeds[0])[1])
    done: list[TunedPart] = []
    tuned = protocol
    with open_trials(path, workers=workers, data_dir=data_dir) as trials:
        for part in (part for part in PARTS if part in parts):
            total = (1 + search.size(tuned, part)) * len(seeds)
            assessor = _Assessor(tuned, part, labels, seeds, trials, total, on_step)
            (own,) = assessor.assess([{}])
            tried = best_first([own, *search.run(tuned, part, assessor.assess)])
            keys = dict.fromkeys(key for result in tried for key in result.setting)
            before = {k: v for k in keys if (v := _value(tuned, part, k)) is not None}
            done.append(TunedPart(part, search.describe(tuned, part), before, own, tried))
            tuned = applied(tuned, part, tried[0].setting)
    return Tuned(tuned, done, labels, n_validation, tuple(seeds))


def default_labels(protocol: Protocol) -> int:
    """Half of the budget, since settings have to suit the complete budget."""
    return protocol.initial + protocol.batch * (protocol.rounds // 2)


class _Assessor:
    """Tries settings of one part, each with all seeds, and reports each finished trial."""

    def __init__(
        self,
        protocol: Protocol,
        part: Part,
        labels: int,
        seeds: Sequence[int],
        trials: Trials,
        total: int,
        on_step: Callable[[Step], None] | None,
    ) -> None:
        self.protocol, self.part, self.labels, self.seeds = protocol, part, labels, seeds
        self.trials, self.total, self.on_step = trials, total, on_step
        self.done = 0

    def assess(self, settings: Sequence[Setting]) -> list[Tried]:
        trials = [
            Trial(applied(self.protocol, self.part, setting), self.part, setting, self.labels, seed)
            for setting in settings
            for seed in self.seeds
        ]
        outcomes = iter(self.trials.run(trials, self._report))
        return [Tried(setting, [next(outcomes) for _ in self.seeds]) for setting in settings]

    def _report(self, trial: Trial, outcome: Outcome, is_new: bool) -> None:
        self.done += 1
        if self.on_step is not None:
            self.on_step(Step(self.part, self.done, self.total, trial, outcome, is_new))


def applied(protocol: Protocol, part: Part, setting: Setting) -> Protocol:
    """The protocol with a setting applied.

    A dropout rate applies to the last two dropout layers; earlier layers keep theirs. If the number
    of features changes, the circuit gets the smallest grid that fits.
    """
    if part == "network":
        values: dict[str, Any] = dict(setting)
        if "features" in values:
            posterior = {k: v for k, v in protocol.posterior.items() if k != "grid"}
            network = replace(protocol.network, features=values.pop("features"))
            protocol = replace(protocol, network=network, posterior=posterior)
        rates = protocol.training().dropout
        if "dropout" in values and isinstance(rates, tuple):
            values["dropout"] = [*rates[:-2], *[values["dropout"]] * len(rates[-2:])]
        training = merged(protocol.network.training, _nested(values))
        return replace(protocol, network=replace(protocol.network, training=training))
    if not setting:
        return protocol
    recipe = merged(protocol.posterior.get("recipe", {}), _nested(setting))
    return replace(protocol, posterior={**protocol.posterior, "recipe": recipe})


def _value(protocol: Protocol, part: Part, key: str) -> float | None:
    """The protocol's value for a key of a setting; None if it has none."""
    if key == "features":
        return protocol.network.features
    table = to_mapping(protocol.training() if part == "network" else protocol.recipe())
    *outer, last = key.split(".")
    for name in outer:
        table = table[name]
    return table.get(last)


def _nested(setting: Mapping[str, Any]) -> dict[str, Any]:
    """``{"fit.learning-rate": 0.1}`` as tables: ``{"fit": {"learning-rate": 0.1}}``."""
    tables: dict[str, Any] = {}
    for key, value in setting.items():
        outer, _, inner = key.partition(".")
        tables = merged(tables, {outer: _nested({inner: value}) if inner else value})
    return tables


def tuned_text(tuned: Tuned, command: str) -> str:
    """The tuned protocol as a file, with comments on the tuning.

    Args:
        tuned: the result of tuning.
        command: the command line that was used.
    """
    seeds = ", ".join(map(str, tuned.seeds))
    lines = [
        f"Found by `{command}`, spinal {__version__}.",
        f"Accuracy in percent on {tuned.n_validation:,} validation points, "
        f"with {tuned.labels:,} labels, "
        f"seed{'s' if len(tuned.seeds) > 1 else ''} {seeds}.",
        "The test set was not read.",
    ]
    for part in tuned.parts:
        lines += [
            "",
            f"{part.part}: {part.search}",
            f"  best   {percent(part.best)}  {describe(part.best.setting)}",
        ]
        if len(part.tried) > 1:
            second = part.tried[1]
            lines.append(f"  second {percent(second)}  {describe(second.setting)}")
        lines.append(f"  before {percent(part.own)}  {describe(part.before)}")
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    mapping = tuned.protocol.to_mapping()
    del mapping["name"]  # a protocol is named after its file
    mapping["title"] = f"{tuned.protocol.title or tuned.protocol.name}, tuned"
    return f"{comments}\n{tomli_w.dumps(mapping)}"


def percent(tried: Tried) -> str:
    """Mean accuracy and its spread over runs."""
    spread = f" ± {100 * tried.spread:.2f}" if len(tried.outcomes) > 1 else ""
    return f"{100 * tried.accuracy:.2f}{spread}"


def describe(setting: Setting) -> str:
    """A setting in words."""
    return ", ".join(f"{key} {number(value)}" for key, value in setting.items()) or "as before"


def number(value: float | Sequence[float]) -> str:
    """A value of a setting as text; several values if there is one per layer."""
    return " ".join(f"{v:g}" for v in value) if isinstance(value, Sequence) else f"{value:g}"


def check_target(path: Path, source: str, trials: Path) -> None:
    """Refuse to overwrite a file that tuning did not write.

    Args:
        path: where the tuned protocol will be written.
        source: name or file of the protocol that is tuned.
        trials: the file of trials; it exists if ``path`` was written by an earlier call.

    Raises:
        SpinalError: if ``path`` is not a TOML file, or one that tuning did not write.
    """
    if path.suffix != ".toml":
        raise SpinalError(f"{path}: a protocol file ends in .toml")
    is_source = path.exists() and Path(source).exists() and path.samefile(source)
    if is_source or (path.exists() and not trials.exists()):
        raise SpinalError(f"{path} would be overwritten: choose another file with --out")
