"""All acquisition functions by name. A new one is a file, and a line here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.auto import Auto
from spinal.acquisition.badge import BADGE
from spinal.acquisition.bait import BAIT
from spinal.acquisition.batchbald import BatchBALD
from spinal.acquisition.density import DensityWeighted
from spinal.acquisition.drop_query import DropQuery
from spinal.acquisition.frank_wolfe import FrankWolfe
from spinal.acquisition.herding import MaxHerding, UncertaintyHerding
from spinal.acquisition.kcenter import KCenter
from spinal.acquisition.ranking import Random, Ranked
from spinal.acquisition.scores import (
    bald,
    margin,
    max_entropy,
    mean_std,
    variation_ratio,
    variation_ratio_votes,
)
from spinal.acquisition.typiclust import TypiClust
from spinal.acquisition.variance import VarianceBALD
from spinal.errors import suggestion

ACQUISITIONS: dict[str, Callable[..., Acquisition]] = {
    "auto": Auto,
    "random": Random,
    "max-entropy": partial(Ranked, max_entropy),
    "variation-ratio": partial(Ranked, variation_ratio),
    "variation-ratio-votes": partial(Ranked, variation_ratio_votes),
    "margin": partial(Ranked, margin),
    "mean-std": partial(Ranked, mean_std),
    "bald": partial(Ranked, bald),
    "power-bald": partial(Ranked, bald, power=1.0),
    "batchbald": BatchBALD,
    "variance-bald": VarianceBALD,
    "power-variance-bald": partial(VarianceBALD, power=1.0),
    "weighted-max-entropy": partial(DensityWeighted, max_entropy),
    "weighted-variation-ratio": partial(DensityWeighted, variation_ratio),
    "acs-fw": FrankWolfe,
    "k-center": KCenter,
    "badge": BADGE,
    "typiclust": TypiClust,
    "max-herding": MaxHerding,
    "uncertainty-herding": UncertaintyHerding,
    "bait": BAIT,
    "drop-query": DropQuery,
}


def make_acquisition(name: str, **settings: Any) -> Acquisition:
    """The acquisition function of this name, with settings other than its own if any are given."""
    if name not in ACQUISITIONS:
        raise AcquisitionError(f"there is no acquisition function {_suggest(name, ACQUISITIONS)}")
    factory = ACQUISITIONS[name]
    known = inspect.signature(factory).parameters
    for key in settings:
        if key not in known:
            raise AcquisitionError(f"{name} has no setting {_suggest(key, known)}")
    return factory(**settings)


def _suggest(wrong: str, names: Iterable[str]) -> str:
    """The wrong name, with the nearest right one or else all of them."""
    return f"{wrong!r}: {suggestion(wrong, names, cutoff=0.5)}"
