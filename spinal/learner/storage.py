"""A learner on disk: its settings, its labels and its trained parts.

A folder holds ``learner.json`` (settings, number of rounds), ``pool.npz`` (labels, without the
points), ``network.safetensors`` and the files of the posterior, and ``history.npz`` if `advice` was
called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinal import networks
from spinal.acquisition import Acquisition, describe_acquisition
from spinal.data import Pool
from spinal.errors import DataError, FileFormatError, LabelError, SpinalError
from spinal.files import (
    CHECKSUMS,
    read_arrays,
    replacing_folder,
    verify_checksums,
    write_arrays,
    write_text,
)
from spinal.learner.advice import History
from spinal.learner.settings import LearnerSettings
from spinal.networks import Network
from spinal.posteriors import Posterior, describe_posterior, make_posterior
from spinal.posteriors.posterior import LearnFrom
from spinal.settings import from_mapping, to_mapping

NETWORK, HISTORY = "network.safetensors", "history.npz"

_FORMAT = "spinal.learner/2"

#: Name and settings of a part; None for an object that only the user can construct.
Described = tuple[str, dict[str, Any]] | None


@dataclass(frozen=True)
class SavedLearner:
    """The content of ``learner.json``.

    Attributes:
        rounds: number of fits.
        settings: settings of the learner itself.
        network: name and settings; None if it was the user's own.
        posterior: name and settings; None if it was the user's own.
        acquisition: name and settings; None if it was the user's own.
        network_learned_from: whether the network learned from the ``labels`` only, or also from
            the ``pool``.
        classes: names of the classes; empty in learners of older versions.
    """

    rounds: int
    settings: LearnerSettings
    network: Described
    posterior: Described
    acquisition: Described
    network_learned_from: LearnFrom = "labels"
    classes: tuple[str, ...] = ()


def describe(
    rounds: int,
    settings: LearnerSettings,
    network: Network,
    posterior: Posterior,
    acquisition: Acquisition,
    network_learned_from: LearnFrom,
    classes: tuple[str, ...],
) -> SavedLearner:
    """The description from which the same learner can be constructed again."""
    config = dict(network.config)
    if config:
        del config["input_shape"], config["n_classes"]  # they come from the pool
    return SavedLearner(
        rounds,
        settings,
        (config.pop("name"), config) if config else None,
        describe_posterior(posterior),
        describe_acquisition(acquisition),
        network_learned_from,
        classes,
    )


def save(
    folder: Path,
    saved: SavedLearner,
    pool: Pool,
    history: History | None,
    trained: tuple[Network, Posterior] | None,
) -> None:
    """Write a learner to a folder, atomically.

    Args:
        folder: where to write; an existing folder is replaced.
        saved: its description.
        pool: its labels are saved, its points are not.
        history: predictions of earlier models, if there are any.
        trained: network and posterior; None before the first fit.
    """
    with replacing_folder(folder) as partial:
        write_arrays(partial / "pool.npz", pool.state_dict())
        values = {"format": _FORMAT, **to_mapping(saved, none=True)}
        write_text(partial / "learner.json", json.dumps(values, indent=2))
        if history is not None:
            history.save(partial / HISTORY)
        if trained is not None:
            network, posterior = trained
            networks.save(network, partial / NETWORK)
            posterior.save(partial)


def read(folder: Path) -> SavedLearner:
    """Read ``learner.json``, after checking all files in the folder for damage.

    Raises:
        FileFormatError: if the folder holds no learner, or a damaged one.
    """
    has_checksums = (folder / CHECKSUMS).exists()
    if has_checksums:
        verify_checksums(folder)
    try:
        values = json.loads((folder / "learner.json").read_text(encoding="utf-8"))
        version = values.pop("format")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{folder}: holds no learner, or a damaged one ({error})") from error
    if version != _FORMAT:
        raise FileFormatError(
            f"{folder}: a learner of another version of spinal ({version}): create it again"
        )
    if not has_checksums:  # older versions, which had none, are refused above
        raise FileFormatError(f"{folder}: damaged (there is no {CHECKSUMS}); delete it")
    return from_mapping(SavedLearner, values, str(folder / "learner.json"))


def read_labels(folder: Path, pool: Pool) -> None:
    """Fill the labels in ``pool.npz`` into a pool.

    Raises:
        FileFormatError: if it is damaged, or was written for other points or classes.
    """
    try:
        pool.load_state_dict(read_arrays(folder / "pool.npz", pool.state_dict()))
    except (DataError, LabelError) as error:
        raise FileFormatError(f"{folder}: its labels do not fit the pool ({error})") from error


def is_fitted(folder: Path) -> bool:
    """Whether a fitted learner was saved in a folder."""
    return (folder / NETWORK).is_file()


def load_network(folder: Path, network: Network | None = None) -> Network:
    """The trained network of a saved learner, without its pool.

    Args:
        folder: where the learner was saved.
        network: a network of the same structure, if the saved one was not built by name. Its
            weights are replaced.

    Raises:
        FileFormatError: if the file is missing or damaged, or the network has another structure.
    """
    if network is None:
        return networks.load(folder / NETWORK)
    networks.load_weights(network, folder / NETWORK)
    return network.eval()


def load_posterior(folder: Path) -> Posterior:
    """The fitted posterior of a saved learner, without its pool.

    Raises:
        FileFormatError: if the folder holds no learner, or a damaged one.
        SpinalError: if the class of the posterior was the user's own.
    """
    described = given_or_saved(None, read(folder).posterior, "posterior", folder)
    posterior = make_posterior(described[0], **described[1])
    posterior.load(folder)
    return posterior


def given_or_saved(part: Any, described: Described, what: str, folder: Path) -> Any:
    """A part for the constructor: the user's argument, or otherwise the saved description.

    A folder may come from anywhere, so a name in it never leads to code outside of spinal.
    """
    if part is None and (described is None or ":" in described[0]):
        raise SpinalError(f"{folder}: was saved with your own {what}: give it again, as `{what}=`")
    return described if part is None else part


def constructor_arguments(
    folder: Path, saved: SavedLearner, network: Any, posterior: Any, acquisition: Any
) -> dict[str, Any]:
    """Arguments of the constructor of a saved learner.

    Args:
        folder: where it was saved.
        saved: its description.
        network: the user's own part, or None for the saved one.
        posterior: the same.
        acquisition: the same.
    """
    return vars(saved.settings) | {
        "network": given_or_saved(network, saved.network, "network", folder),
        "posterior": given_or_saved(posterior, saved.posterior, "posterior", folder),
        "acquisition": given_or_saved(acquisition, saved.acquisition, "acquisition", folder),
    }


def load_history(folder: Path) -> History | None:
    """Predictions of earlier models, if they were saved."""
    return History.load(folder / HISTORY) if (folder / HISTORY).exists() else None
