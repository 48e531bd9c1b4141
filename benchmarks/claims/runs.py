"""Runs under `results`, and figures from them as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.report.experiment import Experiment, experiments, paired
from spinal.report.numbers import percent, points, with_interval
from spinal.report.read import StoredRun, stored_runs
from spinal.report.statistics import MIN_SEEDS, t_interval

RESULTS = Path(__file__).parents[2] / "results"
SPN, SPN_ENTROPY = "spn-cnn-margin", "spn-cnn-max-entropy"
SOFTMAX, MC_DROPOUT, RANDOM = "deterministic-margin", "mc-dropout-margin", "random"
SPN_ENSEMBLE, ENSEMBLE = "spn-ensemble-margin", "ensemble-margin"
BATCHBALD = ("spn-batchbald", "batchbald")
#: The protocols behind the narrow VGG, and what their datasets are called.
VGG = {
    "fashion-mnist-1k@cpu": "Fashion-MNIST",
    "cifar10-1k@cpu": "CIFAR-10",
    "svhn-1k@cpu": "SVHN",
}
#: The protocols at the paper's own numbers of labels, and what their datasets are called.
SMALL = {
    "mnist@small": "MNIST",
    "svhn-1k@small": "SVHN",
    "cifar10-1k@small": "CIFAR-10",
    "fashion-mnist-1k@small": "Fashion-MNIST",
}
#: The same for BatchBALD.
BATCHES = {
    name.replace("-1k", "-batchbald"): title for name, title in SMALL.items() if "-1k" in name
}

PHASES = ("network", "features", "posterior", "scoring", "choice")
#: Runs that were stopped for some minutes while training a network: their seconds mean nothing.
PAUSED = {("svhn-1k@small", "random", 2), ("cifar10-1k@small", "random", 1)}


@cache
def experiment(*folders: str, name: str) -> Experiment:
    """The runs of a protocol in one or more folders under `results`."""
    runs = [run for folder in folders for run in stored_runs(RESULTS / folder)]
    [together] = experiments([run for run in runs if run.protocol == name])
    return together


@cache
def small() -> dict[str, Experiment]:
    """The runs at the paper's own numbers of labels, by protocol.

    Seeds are left out until they have finished runs of Random, Deterministic and SPN-CNN.
    """
    return _complete(SMALL, (RANDOM, SOFTMAX, SPN))


@cache
def batches() -> dict[str, Experiment]:
    """The runs of BatchBALD at the paper's own numbers of labels, by protocol.

    Seeds are left out until they have finished runs of Random, BatchBALD and SPN-BatchBALD.
    """
    return _complete(BATCHES, (RANDOM, *BATCHBALD))


def _complete(names: Iterable[str], methods: Sequence[str]) -> dict[str, Experiment]:
    """The finished runs at the scale ``small``, of seeds for which all these methods finished."""
    runs = [run for run in stored_runs(RESULTS / "small" / "runs") if run.is_finished]
    finished = {(run.protocol, run.seed, run.method) for run in runs}
    complete = [r for r in runs if all((r.protocol, r.seed, m) in finished for m in methods)]
    return _by_protocol(complete, names)


def _by_protocol(runs: Sequence[StoredRun], names: Iterable[str]) -> dict[str, Experiment]:
    """The runs of each protocol, in the order of the names; protocols without runs are left out."""
    found = {e.name: e for e in experiments(runs)}
    return {name: found[name] for name in names if name in found}


@cache
def four_members() -> dict[str, Experiment]:
    """Runs of SPN ensembles of four members, by protocol, to compare with ensembles of five."""
    return _finished("four-members")


@cache
def timed() -> dict[str, Experiment]:
    """Random and SPN-CNN, by protocol: a core each, at the same time, and nothing else running."""
    return _finished("timed")


def _finished(folder: str) -> dict[str, Experiment]:
    """All runs in a folder at the scale ``small``, by protocol."""
    runs = stored_runs(RESULTS / "small" / folder)
    assert all(run.is_finished for run in runs)
    return _by_protocol(runs, SMALL)


def seconds(e: Experiment, method: str) -> dict[str, float]:
    """Seconds of each phase, in all rounds and seeds."""
    each = [_seconds(run) for run in e.of(method)]
    return {phase: sum(spent[phase] for spent in each) for phase in PHASES}


def _seconds(run: StoredRun) -> dict[str, float]:
    return {p: sum(record.seconds.get(p, 0) for record in run.rounds) for p in PHASES}


def timed_ratio(e: Experiment) -> float:
    """Seconds of SPN-CNN over those of Random."""
    return sum(seconds(e, SPN).values()) / sum(seconds(e, RANDOM).values())


def phase_costs(e: Experiment, method: str) -> dict[str, float]:
    """Seconds of each phase over those of the network in the same run; mean over seeds.

    The load of the machine affects all phases of a run alike.
    """
    costs = []
    for run in e.of(method):
        if (e.name, method, run.seed) in PAUSED:
            continue
        total = _seconds(run)
        costs.append([total[phase] / total["network"] for phase in PHASES])
    return dict(zip(PHASES, np.mean(costs, axis=0).tolist(), strict=True))


def cost(e: Experiment, method: str, other: str = RANDOM, of: Experiment | None = None) -> float:
    """Seconds of a method over those of another, both in units of training the network.

    ``of``: the runs of the other method, if they are not in ``e``.
    """
    first, second = phase_costs(e, method), phase_costs(of or e, other)
    return sum(first.values()) / sum(second.values())


def digits() -> Experiment:
    """All methods on digits."""
    return experiment("digits/runs", name="digits")


def difference(e: Experiment, first: str, second: str = RANDOM) -> NDArray[np.float64]:
    """Differences in area of paired seeds."""
    return paired(e.areas, first, second)


def after_a_choice(e: Experiment, first: str, second: str = RANDOM) -> NDArray[np.float64]:
    """Differences in mean accuracy of paired seeds, without the initial labels."""
    return paired(e.accuracy.loc[e.labels[1:]].mean(), first, second)


def shown(values: NDArray[np.float64]) -> str:
    """The mean difference in points, with its interval, or else with both seeds."""
    if len(values) >= MIN_SEEDS:
        return with_interval(values.mean(), *t_interval(values))
    seeds = f" ({', '.join(points(v) for v in values)})" if len(values) > 1 else ""
    return points(values.mean()) + seeds


def clearly_above(values: NDArray[np.float64]) -> bool:
    """Whether the interval of the mean is above 0."""
    return t_interval(values)[0] > 0


def excludes_zero(values: NDArray[np.float64]) -> bool:
    """Whether 0 is outside of the interval of the mean."""
    low, high = t_interval(values)
    return low > 0 or high < 0


def area(e: Experiment, method: str) -> str:
    """Mean area of a method, in percent."""
    return percent(e.areas[method].mean(), 1)


def ends_at(e: Experiment, method: str, labels: int) -> float:
    """Mean accuracy of a method at a number of labels."""
    return float(e.mean_curve(method).loc[labels])


def seeds(n: int) -> str:
    """``one seed`` or ``3 seeds``."""
    return "one seed" if n == 1 else f"{n} seeds"


def listed(parts: Sequence[str]) -> str:
    """``a``, or ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def by_dataset(differences: Mapping[str, NDArray[np.float64]]) -> str:
    """Differences by protocol, with the names of the datasets."""
    titles = VGG | SMALL
    return listed([f"{shown(values)} on {titles[name]}" for name, values in differences.items()])


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1
) -> Iterator[str]:
    """The lines of a table; the first columns, ``words`` of them, are aligned to the left."""
    rows = list(rows)
    if not rows:
        yield "*No runs yet.*"
        return
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * words + "--:|" * (len(head) - words)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
