"""All acquisition functions by name. To add one, write a file, and add a line here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.auto import Auto
from spinal.acquisition.badge import BADGE
from spinal.acquisition.bait import BAIT
from spinal.acquisition.batchbald import BatchBALD
from spinal.acquisition.custom import Custom
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
from spinal.errors import SpinalError, suggestion
from spinal.registry import find_own, is_own, registered
from spinal.settings import from_mapping

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
    """The acquisition function of this name.

    Args:
        name: a key of `ACQUISITIONS`, or the name of your own part, see `spinal.registry`.
        settings: settings that differ from the defaults.

    Raises:
        AcquisitionError: if there is no such function, no such setting, or a wrong value.
    """
    if name in ACQUISITIONS:
        acquisition = ACQUISITIONS[name]()
    elif is_own("acquisition", name):
        acquisition = _own(find_own("acquisition", name), name)
    else:
        hint = suggestion(name, [*ACQUISITIONS, *registered("acquisition")], cutoff=0.5)
        raise AcquisitionError(f"there is no acquisition function {name!r}: {hint}")
    if not settings:
        return acquisition
    try:
        return from_mapping(type(acquisition), settings, f"acquisition {name}", acquisition)
    except AcquisitionError:
        raise
    except SpinalError as error:
        raise AcquisitionError(str(error)) from error


def _own(part: Any, name: str) -> Acquisition:
    """An acquisition function from a user's object, class or function."""
    if isinstance(part, type) and issubclass(part, Acquisition):
        return part()
    if isinstance(part, Acquisition):
        return part
    if callable(part):
        return Custom(part)
    raise AcquisitionError(f"acquisition {name}: {part!r} is not a function of candidates")


def describe_acquisition(acquisition: Acquisition) -> tuple[str, dict[str, Any]] | None:
    """Name and settings of an acquisition function, as plain values.

    If several names have the same class (``bald``, ``power-bald``), the one whose defaults are
    nearest is used. None for a user's function.
    """
    described = []
    for name, factory in ACQUISITIONS.items():
        default = factory()
        if type(default) is type(acquisition):
            settings = {
                field.name: getattr(acquisition, field.name)
                for field in dataclasses.fields(acquisition)  # type: ignore[arg-type]
                if getattr(acquisition, field.name) != getattr(default, field.name)
            }
            if not any(callable(value) for value in settings.values()):
                described.append((name, settings))
    return min(described, key=lambda pair: len(pair[1]), default=None)
