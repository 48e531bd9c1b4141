"""The parts of a learner, from a name, a name with settings, or an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from spinal.acquisition import Acquisition, Candidates, Custom, make_acquisition
from spinal.acquisition.herding import MaxHerding
from spinal.data import Pool
from spinal.errors import SpinalError
from spinal.methods import find_method
from spinal.networks import Network, NetworkError, build_network, wrap
from spinal.posteriors import Estimator, Posterior, is_estimator, make_posterior
from spinal.registry import is_own

#: A name, settings that differ from the defaults, or a name with such settings.
Named = str | Mapping[str, Any] | tuple[str, Mapping[str, Any]]
#: Types of the arguments for the parts. None stands for the default. A posterior can also be a
#: classifier with scikit-learn's interface.
NetworkPart = Named | nn.Module | None
PosteriorPart = Named | Posterior | Any
AcquisitionPart = Named | Acquisition | Callable[[Candidates], Any] | None

#: The method name of a learner with the user's own classifier.
ESTIMATOR = "estimator"


def make_network(part: NetworkPart, pool: Pool, seed: int) -> Network:
    """The network for the points and classes of a pool.

    Raises:
        NetworkError: if there is no such network, or a module cannot be split into features and
            head.
    """
    if isinstance(part, Network):
        return part
    shape = pool.points.shape[1:]
    if isinstance(part, nn.Module):
        try:
            return wrap(part, None, shape)
        except NetworkError as error:
            raise NetworkError(
                f"the features of {type(part).__name__} were not found ({error}). Name the module "
                f"that computes them: network=spinal.networks.wrap(module, 'name', {shape})"
            ) from error
    name, settings = named(part, "lenet" if len(shape) == 3 else "dense", "network")
    return build_network(name, shape, len(pool.classes), **{"seed": seed, **settings})


def widen(network: Network, pool: Pool, seed: int) -> Network:
    """The network for a pool with more classes than before: a new head on the same features.

    Raises:
        NetworkError: if the network was not built by name.
    """
    if not network.config:
        raise NetworkError(
            f"the pool has {len(pool.classes)} classes now, and your own network fewer outputs: "
            "create a new learner, with a network that has enough outputs"
        )
    config = dict(network.config, n_classes=len(pool.classes))
    wider = build_network(seed=seed, **config)
    wider.body.load_state_dict(network.body.state_dict())
    wider.preprocess.load_state_dict(network.preprocess.state_dict())
    wider.preprocess.fills_missing = network.preprocess.fills_missing
    return wider


def resolve_posterior(part: PosteriorPart, default: str) -> Posterior:
    """The posterior of an argument; ``default`` if the argument gives no name."""
    if isinstance(part, Posterior):
        return part
    if is_estimator(part):
        return Estimator(part)
    name, settings = named(part, default, "posterior")
    return make_posterior(name, **settings)


def resolve_acquisition(part: AcquisitionPart, default: str) -> Acquisition:
    """The acquisition function of an argument; ``default`` if the argument gives no name."""
    if isinstance(part, Acquisition):
        return part
    if callable(part):
        return Custom(part)
    name, settings = named(part, default, "acquisition")
    return make_acquisition(name, **settings)


def first_acquisition(
    acquisition: Acquisition, posterior: Posterior, network: Network, start: Posterior | None
) -> Acquisition:
    """How points are chosen before the first fit.

    With a model that was trained elsewhere, points are chosen by the acquisition function of the
    learner, or by margin if the model does not provide what this function needs. Without a model,
    herding covers the pool if features need no training. Otherwise points are chosen at random.

    Args:
        acquisition: the learner's acquisition function.
        posterior: the learner's posterior.
        network: the learner's network.
        start: the model that was trained elsewhere, if there is one.
    """
    if start is None:
        if isinstance(acquisition, MaxHerding) and posterior.can_learn_from_pool(network):
            return MaxHerding(acquisition.sample)
        return make_acquisition("random")
    try:
        check_match(start, acquisition)
    except SpinalError:
        return make_acquisition("margin")
    return acquisition


def named(part: Any, default: str, what: str) -> tuple[str, dict[str, Any]]:
    """Name and settings of a part; the name is ``default`` if only settings are given."""
    if part is None:
        return default, {}
    if isinstance(part, str):
        return part, {}
    if isinstance(part, Mapping):
        return default, dict(part)
    if isinstance(part, tuple | list) and len(part) == 2 and isinstance(part[0], str):
        return part[0], dict(part[1])
    raise SpinalError(
        f"{what}: {part!r} is not a name, ('name', {{settings}}), {{settings}} or a suitable object"
    )


def default_part(method: str, what: str, given: Any) -> str:
    """The posterior or acquisition function of a method; not looked up if one is given.

    So a learner that was saved with the user's own parts can be loaded without importing code that
    the folder names.
    """
    is_given = given is not None and not isinstance(given, Mapping)  # not only settings
    if method == ESTIMATOR or (is_given and is_own("method", method)):
        return "margin" if what == "acquisition" else "logistic"
    return getattr(find_method(method), what)


def check_match(posterior: Posterior, acquisition: Acquisition) -> None:
    """Check that the posterior provides everything that the acquisition function needs.

    Raises:
        SpinalError: if it does not.
    """
    lacking = set(acquisition.needs) & {"log_density", "moments"}
    if acquisition.compares_samples:
        lacking.add("samples")
    lacking -= posterior.provides
    if lacking:
        raise SpinalError(
            f"{type(posterior).__name__} has no {' or '.join(sorted(lacking))}, which this "
            "acquisition function needs: choose another, or method 'spn-cnn'"
        )
