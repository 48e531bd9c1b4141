"""Tuning: settings of a protocol, chosen on the validation set; the winner as a protocol file."""

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

#: In the order that they are tuned in: a circuit sees the features of the network that won.
PARTS: tuple[Part, ...] = ("network", "circuit")


@dataclass(frozen=True)
class TunedPart:
    """What tuning one part came to.

    Attributes:
        part: which.
        search: how it was gone through, in a line.
        before: the settings that the protocol had, as far as others were tried; what is not among
            them is as the network is built.
        own: what these came to; its setting is empty.
        tried: all settings, best first, ``own`` among them.
    """

    part: Part
    search: str
    before: Setting
    own: Tried
    tried: Sequence[Tried]

    @property
    def best(self) -> Tried:
        """The winner."""
        return self.tried[0]


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Attributes:
        protocol: with the winners in it.
        parts: how they were found.
        labels: labelled points in each trial.
        held: validation points that they were judged by.
        seeds: one run of every setting for each.
    """

    protocol: Protocol
    parts: Sequence[TunedPart]
    labels: int
    held: int
    seeds: Sequence[int]


@dataclass(frozen=True)
class Step:
    """A trial that is done, the ``done``-th of ``total`` of a part; known before, or new."""

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

    The protocol's own settings are among those that compete, so that the winner is not worse than
    they are, as far as the validation set can tell.

    Args:
        protocol: what to tune.
        search: which settings are tried.
        path: of the file that trials are kept in; those that are there are not made again.
        parts: what to tune; the circuit is tuned on the features of the network that won.
        labels: with how many labels; half of the protocol's budget, if not given.
        seeds: one run of every setting for each.
        workers: trials at a time; 0: one for each core.
        data_dir: where datasets are kept.
        on_step: told of every trial.

    Raises:
        SpinalError: if the protocol has too few points, or another process uses ``path``.
    """
    labels = default_labels(protocol) if labels is None else labels
    dataset = load_dataset(protocol.dataset, data_dir)  # downloads once, before the workers start
    held = len(training_split(protocol, dataset, labels, seeds[0])[1])
    done: list[TunedPart] = []
    tuned = protocol
    with open_trials(path, workers=workers, data_dir=data_dir) as trials:
        for part in (part for part in PARTS if part in parts):
            total = (1 + search.size(tuned, part)) * len(seeds)
            assessor = _Assessor(tuned, part, labels, seeds, trials, total, on_step)
            (own,) = assessor.assess([{}])
            tried = best_first([own, *search.run(tuned, part, assessor.assess)])
            keys = dict.fromkeys(key for each in tried for key in each.setting)
            before = {k: v for k in keys if (v := _value(tuned, part, k)) is not None}
            done.append(TunedPart(part, search.describe(tuned, part), before, own, tried))
            tuned = applied(tuned, part, tried[0].setting)
    return Tuned(tuned, done, labels, held, tuple(seeds))


def default_labels(protocol: Protocol) -> int:
    """Half-way through the budget: settings have to do for all of it."""
    return protocol.initial + protocol.batch * (protocol.rounds // 2)


class _Assessor:
    """Tries settings of one part, each with all seeds, and reports each trial that is done."""

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
    """The protocol, with a setting in the place of what it said before.

    A dropout rate is that of the last two layers; those before keep theirs.
    """
    if part == "network":
        values: dict[str, Any] = dict(setting)
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
    """What a protocol has at a key of a setting; None, if it leaves that open."""
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
    """The winner as a protocol file, with comments that say how it was found.

    Args:
        tuned: what was found.
        command: that found it.
    """
    seeds = ", ".join(map(str, tuned.seeds))
    lines = [
        f"Found by `{command}`, spinal {__version__}.",
        f"Accuracy in percent on {tuned.held:,} validation points, with {tuned.labels:,} labels, "
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
    del mapping["name"]  # a protocol is called as its file is
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
    """A value of a setting; several, where a protocol has one for each layer."""
    return " ".join(f"{v:g}" for v in value) if isinstance(value, Sequence) else f"{value:g}"


def check_target(path: Path, source: str, trials: Path) -> None:
    """Refuse to write the winner over something else.

    Args:
        path: where it is to be written.
        source: name or file of the protocol that is tuned.
        trials: where trials are kept: there already, if ``path`` was written by an earlier call.

    Raises:
        SpinalError: if ``path`` is no TOML file, or one that tuning did not write.
    """
    if path.suffix != ".toml":
        raise SpinalError(f"{path}: a protocol file ends in .toml")
    is_source = path.exists() and Path(source).exists() and path.samefile(source)
    if is_source or (path.exists() and not trials.exists()):
        raise SpinalError(f"{path} would be overwritten: choose another file with --out")
