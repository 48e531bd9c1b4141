"""Searches over settings: the paper's procedure, or Optuna."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any
from typing import Protocol as Interface

from spinal.data import dataset_name
from spinal.errors import SpinalError
from spinal.experiments.protocol import Protocol
from spinal.experiments.tuning.trials import Outcome, Part, Setting


@dataclass(frozen=True)
class Tried:
    """A setting, and the outcomes of its runs."""

    setting: Setting
    outcomes: Sequence[Outcome]

    @property
    def accuracy(self) -> float:
        """The mean over runs."""
        return fmean(outcome.accuracy for outcome in self.outcomes)

    @property
    def spread(self) -> float:
        """The standard deviation over runs; NaN for a single run."""
        values = [outcome.accuracy for outcome in self.outcomes]
        return stdev(values) if len(values) > 1 else math.nan

    @property
    def nll(self) -> float:
        """The mean over runs; infinite if one diverged."""
        return fmean(outcome.nll for outcome in self.outcomes)


def best_first(tried: Sequence[Tried]) -> list[Tried]:
    """Sorted by mean accuracy, then by negative log-likelihood, then by order of trial."""
    return sorted(tried, key=lambda result: (-result.accuracy, result.nll))


#: Tries settings, each with all seeds.
Assess = Callable[[Sequence[Setting]], list[Tried]]


class Search(Interface):
    """A strategy that chooses which settings to try."""

    def size(self, protocol: Protocol, part: Part) -> int:
        """Number of settings that it tries."""

    def run(self, protocol: Protocol, part: Part, assess: Assess) -> list[Tried]:
        """Try the settings, and return them with their outcomes."""

    def describe(self, protocol: Protocol, part: Part) -> str:
        """A description in one line."""


@dataclass(frozen=True)
class Values:
    """The values that the paper's procedure tries.

    Attributes:
        learning_rates: tried first, each with every dropout rate of ``beside``.
        beside: dropout rates for the learning rates; None stands for the dropout of the protocol.
        dropouts: tried afterwards, with the best learning rate.
        sizes: sizes of the dense layer at width 1, tried last, with the best of the other settings.
            Until then, the network's own size is used.
    """

    learning_rates: tuple[float, ...]
    beside: tuple[float | None, ...]
    dropouts: tuple[float, ...]
    sizes: tuple[int, ...] = ()


def _steps(first: int, last: int, step: int) -> tuple[float, ...]:
    """Thousandths from ``first`` to ``last``."""
    return tuple(thousandths / 1000 for thousandths in range(first, last + 1, step))


#: The paper's values for its SPN: learning rates from .005 to .1 in steps of .01, at a dropout of
#: .1; then dropout from .05 to .5. (Those steps include neither .1 nor .08, which the paper chose.)
CIRCUIT = Values(_steps(5, 100, 10), (0.1,), _steps(50, 500, 50))

#: The paper's values for its LeNet on MNIST: each learning rate at both dropout rates.
LENET = Values(_steps(1, 100, 1), (0.25, 0.5), (0.25, 0.5), (256, 512))

#: The paper's values for its VGG on CIFAR-10; dropout is the rate of the last two dropout layers.
VGG = Values((0.001, 0.01), (0.5,), (0.25, 0.3, 0.5), (256,))

#: The paper's values for its VGG on Fashion-MNIST; it used the result for SVHN as well. Dropout was
#: not tuned.
VGG_ELSEWHERE = Values((0.0005, 0.001, 0.1), (None,), ())

#: Our own values: the paper has no such networks.
DENSE = Values((0.0005, 0.001, 0.002, 0.005, 0.01, 0.02), (0.5,), (0.0, 0.25, 0.5))
RESNET_SLIM = Values((0.05, 0.1, 0.15, 0.2), (0.1,), (0.0, 0.1, 0.3))

# Where the settings are in the tables of a protocol.
_KEYS: dict[Part, tuple[str, str]] = {
    "network": ("learning-rate", "dropout"),
    "circuit": ("fit.learning-rate", "fit.leaf-dropout"),
}


def paper_values(protocol: Protocol, part: Part) -> Values:
    """The values that the paper tried for a part of this protocol."""
    if part == "circuit":
        return CIRCUIT
    vgg = VGG if dataset_name(protocol.dataset) == "cifar-10" else VGG_ELSEWHERE
    values = {"lenet": LENET, "vgg": vgg, "resnet-slim": RESNET_SLIM, "dense": DENSE}
    return values[protocol.network.architecture]


@dataclass(frozen=True)
class PaperSearch:
    """The paper's procedure: the learning rate, then dropout, then the size of the dense layer.

    Attributes:
        learning_rates: tried instead of the paper's.
        dropouts: tried instead of the paper's; an empty tuple leaves dropout as it is in the
            protocol.
        sizes: sizes of the dense layer at width 1, tried instead of the paper's.
    """

    learning_rates: tuple[float, ...] | None = None
    dropouts: tuple[float, ...] | None = None
    sizes: tuple[int, ...] | None = None

    def values(self, protocol: Protocol, part: Part) -> Values:
        """The values to try."""
        defaults = paper_values(protocol, part)
        rates = defaults.learning_rates if self.learning_rates is None else self.learning_rates
        dropouts = defaults.dropouts if self.dropouts is None else self.dropouts
        sizes = defaults.sizes if self.sizes is None or part == "circuit" else self.sizes
        return Values(rates, defaults.beside, dropouts, sizes)

    def size(self, protocol: Protocol, part: Part) -> int:
        v = self.values(protocol, part)
        rates = len(v.learning_rates) * len(v.beside)
        return rates + len(set(v.dropouts) - set(v.beside)) + len(v.sizes)

    def run(self, protocol: Protocol, part: Part, assess: Assess) -> list[Tried]:
        v = self.values(protocol, part)
        rate_key, dropout_key = _KEYS[part]
        tried = assess(
            [
                {rate_key: rate} if beside is None else {rate_key: rate, dropout_key: beside}
                for rate in v.learning_rates
                for beside in v.beside
            ]
        )
        best = best_first(tried)[0].setting[rate_key]
        new = [rate for rate in v.dropouts if rate not in v.beside]
        tried += assess([{rate_key: best, dropout_key: dropout} for dropout in new])
        best_setting = best_first(tried)[0].setting
        features = [round(protocol.network.width * size) for size in v.sizes]
        return tried + assess([{**best_setting, "features": size} for size in features])

    def describe(self, protocol: Protocol, part: Part) -> str:
        v = self.values(protocol, part)
        text = _range(v.learning_rates, "learning rate")
        beside = [f"{rate:g}" for rate in v.beside if rate is not None]
        if beside:
            text += f" at dropout {' and '.join(beside)}"
        if v.dropouts:
            text += f", then {_range(v.dropouts, 'dropout rate')}"
        return f"{text}, then {_range(v.sizes, 'size')} of the dense layer" if v.sizes else text


def _range(values: Sequence[float], what: str) -> str:
    plural = "" if len(values) == 1 else "s"
    if len(values) < 4:
        return f"{what}{plural} {', '.join(f'{value:g}' for value in values)}"
    return f"{len(values)} {what}{plural} from {min(values):g} to {max(values):g}"


# Proposals that Optuna makes at once: a fixed number, so that they depend only on its seed and on
# earlier outcomes, not on the number of workers.
_AT_ONCE = 4


@dataclass(frozen=True)
class OptunaSearch:
    """Optuna's tree-structured Parzen estimator, over more settings than the paper's two.

    The study is not stored. With the same seed and the same outcomes, which `Trials` stores, it
    proposes the same settings, so an interrupted study can be replayed and then continued.

    Attributes:
        trials: number of settings to try.
        seed: for the proposals.
    """

    trials: int = 50
    seed: int = 0

    def size(self, protocol: Protocol, part: Part) -> int:
        return self.trials

    def run(self, protocol: Protocol, part: Part, assess: Assess) -> list[Tried]:
        optuna = _optuna()
        sampler = optuna.samplers.TPESampler(seed=self.seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        space, tried = _space(optuna, part), []
        for start in range(0, self.trials, _AT_ONCE):
            proposals = [study.ask(space) for _ in range(min(_AT_ONCE, self.trials - start))]
            results = assess([_rounded(trial.params) for trial in proposals])
            for trial, result in zip(proposals, results, strict=True):
                study.tell(trial, result.accuracy)
            tried += results
        return tried

    def describe(self, protocol: Protocol, part: Part) -> str:
        names = ", ".join(_space(_optuna(), part))
        return f"{self.trials} proposals by Optuna, seed {self.seed}, of {names}"


def _optuna() -> Any:
    if importlib.util.find_spec("optuna") is None:
        raise SpinalError("Optuna is missing: pip install 'spinal[tune]'")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _space(optuna: Any, part: Part) -> dict[str, Any]:
    """The search space for Optuna."""
    real, choice = (
        optuna.distributions.FloatDistribution,
        optuna.distributions.CategoricalDistribution,
    )
    if part == "network":
        return {
            "learning-rate": real(1e-4, 1e-1, log=True),
            "dropout": real(0.0, 0.6, step=0.05),
            "batch-size": choice((16, 32, 64, 128)),
            "weight-decay": real(1e-5, 1e-1, log=True),
            "label-smoothing": real(0.0, 0.2, step=0.05),
        }
    return {
        "fit.learning-rate": real(2e-3, 2e-1, log=True),
        "fit.leaf-dropout": real(0.0, 0.5, step=0.05),
        "fit.generative": real(0.0, 0.9, step=0.05),
        "scale": real(1.0, 10.0, log=True),
    }


def _rounded(params: Mapping[str, float]) -> Setting:
    """Round values to three significant digits, for readability."""
    return {
        key: value if isinstance(value, int) else float(f"{value:.3g}")
        for key, value in params.items()
    }
