"""All posteriors by name. To add one, write a file, and add a line here."""

from __future__ import annotations

import copy
from typing import Any

from spinal.errors import SpinalError, suggestion
from spinal.posteriors.deterministic import Deterministic
from spinal.posteriors.ensemble import Ensemble
from spinal.posteriors.estimator import Estimator, is_estimator
from spinal.posteriors.logistic import Logistic
from spinal.posteriors.mc_dropout import MCDropout
from spinal.posteriors.neural_linear import NeuralLinear
from spinal.posteriors.posterior import Posterior
from spinal.posteriors.spn import SPN
from spinal.posteriors.spn_ensemble import SPNEnsemble
from spinal.registry import find_own, is_own, registered
from spinal.settings import from_mapping, to_mapping

POSTERIORS: dict[str, type[Posterior]] = {
    "deterministic": Deterministic,
    "ensemble": Ensemble,
    "logistic": Logistic,
    "mc-dropout": MCDropout,
    "neural-linear": NeuralLinear,
    "spn": SPN,
    "spn-ensemble": SPNEnsemble,
}


def make_posterior(name: str, **settings: Any) -> Posterior:
    """The posterior of this name.

    Args:
        name: a key of `POSTERIORS`, or the name of your own part, see `spinal.registry`.
        settings: settings that differ from the defaults, as objects or as plain values (nested
            tables).

    Raises:
        SpinalError: if there is no such posterior, or no such setting.
    """
    if name in POSTERIORS:
        return from_mapping(POSTERIORS[name], settings, f"posterior {name}")
    if not is_own("posterior", name):
        hint = suggestion(name, [*POSTERIORS, *registered("posterior")])
        raise SpinalError(f"there is no posterior {name!r}: {hint}")
    return own_posterior(find_own("posterior", name), name, settings)


def own_posterior(part: Any, name: str, settings: dict[str, Any]) -> Posterior:
    """A posterior from a user's object or class; ``name`` is for messages."""
    if isinstance(part, type) and issubclass(part, Posterior):
        return from_mapping(part, settings, f"posterior {name}")
    if isinstance(part, Posterior):
        return copy.deepcopy(part)
    if is_estimator(part):
        return Estimator(part(**settings) if isinstance(part, type) else part)
    raise SpinalError(f"posterior {name}: {part!r} is neither a Posterior nor a classifier")


def describe_posterior(posterior: Posterior) -> tuple[str, dict[str, Any]] | None:
    """Name and settings of a posterior, as plain values; None for a user's class."""
    for name, kind in POSTERIORS.items():
        if type(posterior) is kind:
            return name, to_mapping(posterior, none=True)
    return None
