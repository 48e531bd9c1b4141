"""Protocols: experiments described by TOML files; see `spinal.experiments.scales`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from spinal.circuits import Recipe
from spinal.data import DataSettings, dataset_name, dataset_names
from spinal.encoders import encoder_names, is_encoder
from spinal.errors import SpinalError, suggestion
from spinal.experiments.scales import ExperimentFiles
from spinal.experiments.scales import tomllib as tomllib
from spinal.experiments.tables import (
    acquisition_settings,
    check_acquisitions,
    check_posteriors,
    circuit_recipe,
    posterior_settings,
    preset,
)
from spinal.networks import NETWORKS, PAPER_LENET, PAPER_VGG, SLIM, TUNED, TrainSettings
from spinal.settings import from_mapping, to_mapping

TRAINING: dict[str, TrainSettings] = {
    "tuned": TUNED,
    "slim": SLIM,
    "paper-lenet": PAPER_LENET,
    "paper-vgg": PAPER_VGG,
}


@dataclass(frozen=True)
class NetworkProtocol:
    """The network and its training.

    Attributes:
        name: a network of `spinal.networks.NETWORKS`, or an encoder (`spinal.encoders`), on whose
            features one dense layer is trained.
        width: factor on its channels and features.
        features: size of its dense layer; None to derive it from the width.
        mirror: whether its features are means over an image and its mirror image, for
            `resnet-slim`; None for the default of the network.
        preset: the training settings to start from: ``tuned``, ``slim`` (for
            `resnet-slim`), ``paper-lenet``, ``paper-vgg``.
        training: settings that differ from the preset.
        retrain: whether each round trains from ``scratch`` or continues (``continue``).
        early_stopping: keep the weights with the lowest loss on the validation set.
    """

    name: str = "lenet"
    width: float = 1.0
    features: int | None = None
    mirror: bool | None = None
    preset: str = "tuned"
    training: dict[str, Any] = field(default_factory=dict)
    retrain: Literal["scratch", "continue"] = "scratch"
    early_stopping: bool = False

    @property
    def is_encoder(self) -> bool:
        """Whether points are features of an encoder."""
        return self.name not in NETWORKS and is_encoder(self.name)

    @property
    def architecture(self) -> str:
        """The network that is trained."""
        return "dense" if self.is_encoder else self.name

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `spinal.networks.build_network` that the protocol sets."""
        further = {"features": self.features, "mirror": self.mirror}
        return {"width": self.width, **{k: v for k, v in further.items() if v is not None}}

    def settings(self, where: str) -> TrainSettings:
        """The preset with the changes in ``training``; ``where`` names the table in messages."""
        base = preset(TRAINING, self.preset, f"{where}, preset")
        return from_mapping(TrainSettings, self.training, f"{where}.training", base)


class Trained:
    """Base class of settings with a network and posteriors."""

    name: str
    network: NetworkProtocol
    posterior: dict[str, Any]

    def training(self) -> TrainSettings:
        """The settings of the network's training."""
        return self.network.settings(f"{self.name}: network")

    def recipe(self) -> Recipe:
        """The settings of the circuit."""
        return circuit_recipe(self.posterior, f"{self.name}: posterior")

    def posterior_settings(self, posterior: str) -> dict[str, Any]:
        """The settings in ``[posterior]`` for the posterior of this name."""
        return posterior_settings(self.posterior, posterior, f"{self.name}: posterior")


@dataclass(frozen=True)
class Protocol(Trained):
    """All settings of an experiment except method, acquisition function and seed.

    Attributes:
        name: name of the folder with its runs.
        title: title for tables and plots.
        dataset: a name from `spinal.data.dataset_names`, the path of your own file or folder, or
            ``module:name`` for a function that makes a `spinal.data.Dataset`.
        data: how to read your own file or folder; see `spinal.data.own`.
        initial: number of initially labelled points.
        batch: number of points asked in a round.
        rounds: number of rounds that ask for labels.
        pool: number of points that may be asked; None for all that are in no other set.
        validation: number of points for early stopping and tuning.
        test: number of points of the predefined test set to use; None for all.
        stratified: whether the initial set contains the classes in equal numbers.
        candidates: number of pool points that are assessed in a round; None for all.
        learn_from: the ``labels`` only, or also the ``pool``; see
            `spinal.learner.LearnerSettings`.
        paper: the table of `spinal.report.paper` that reports compare with the results.
        network: the network and its training.
        posterior: settings of posteriors; each uses the settings that it has. See
            `spinal.experiments.tables`.
        acquisition: settings of acquisition functions, in the same way. ``name`` is the function
            for all compatible methods, or a list of several.
    """

    name: str
    title: str = ""
    dataset: str = "digits"
    data: DataSettings | None = None
    initial: int = 20
    batch: int = 10
    rounds: int = 10
    pool: int | None = None
    validation: int = 0
    test: int | None = None
    stratified: bool = False
    candidates: int | None = None
    learn_from: Literal["pool", "labels"] | None = None
    paper: str | None = None
    network: NetworkProtocol = field(default_factory=NetworkProtocol)
    posterior: dict[str, Any] = field(default_factory=dict)
    acquisition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.initial < 1 or self.batch < 1 or self.rounds < 0:
            raise SpinalError(f"{self.name}: initial and batch must be 1 or more, rounds 0 or more")
        if self.network.architecture not in NETWORKS:
            hint = suggestion(self.network.name, [*NETWORKS, *encoder_names()])
            raise SpinalError(f"{self.name}: no network {self.network.name!r}: {hint}")
        if self.data is not None and not self.dataset_is_own:
            raise SpinalError(f"{self.name}: [data] is for files of your own, not {self.dataset}")
        # Mistakes in a file are reported before anything is trained.
        self.training()
        check_posteriors(self.posterior, f"{self.name}: posterior")
        check_acquisitions(self.acquisition, f"{self.name}: acquisition")

    @property
    def data_key(self) -> str:
        """The same text for the same data: the dataset, and how it is read."""
        return dataset_name(self.dataset) + (f" {self.data}" if self.data is not None else "")

    @property
    def dataset_is_own(self) -> bool:
        """Whether the dataset is not one that spinal knows by name."""
        return dataset_name(self.dataset) not in dataset_names()

    @property
    def acquisition_names(self) -> list[str]:
        """The acquisition functions that the protocol names; may be empty."""
        names = self.acquisition.get("name", [])
        return [names] if isinstance(names, str) else list(names)

    @property
    def default_seeds(self) -> range:
        """Five seeds if the paper has a table for this protocol, as in the paper; otherwise one."""
        return range(1 if self.paper is None else 5)

    def acquisition_settings(self, acquisition: str) -> dict[str, Any]:
        """The settings in ``[acquisition]`` for the function of this name."""
        return acquisition_settings(self.acquisition, acquisition)

    def to_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for TOML or JSON."""
        return to_mapping(self)


_FILES = ExperimentFiles(Protocol, "protocols", "protocol")


def protocol_names() -> list[str]:
    """The protocols that come with spinal."""
    return _FILES.names()


def load_protocol(name_or_path: str | Path, changes: Sequence[str] = ()) -> Protocol:
    """A protocol that comes with spinal, by name, or any TOML file; see `ExperimentFiles.load`."""
    return _FILES.load(name_or_path, changes)


def scale_names(name_or_path: str | Path) -> list[str]:
    """The names of a protocol's scales."""
    return _FILES.scales(name_or_path)


def protocol_text(name: str) -> str:
    """The TOML file of a protocol that comes with spinal, for copying and editing."""
    return _FILES.text(name)


def with_spn(protocol: Protocol, spn: Literal["paper", "tuned"]) -> Protocol:
    """The same protocol with another SPN, under its own name.

    Args:
        protocol: at any scale; its network and the network's training are not changed.
        spn: ``paper`` for a circuit trained as in the paper, with points chosen by plain max
            entropy and variation ratio; ``tuned`` for a circuit in closed form, with the default
            acquisition function of each method.
    """
    posterior = {k: v for k, v in protocol.posterior.items() if k not in ("preset", "recipe")}
    acquisition = {k: v for k, v in protocol.acquisition.items() if k not in ("name", "sharpness")}
    if spn == "paper":
        is_mnist = dataset_name(protocol.dataset) == "mnist"
        posterior["preset"] = "paper-mnist" if is_mnist else "paper"
        acquisition["name"] = ["max-entropy", "variation-ratio"]
    return replace(
        protocol,
        name=f"{protocol.name}-{spn}-spn",
        title=f"{protocol.title or protocol.name}, {spn} SPN",
        posterior=posterior,
        acquisition=acquisition,
    )


def shortened(protocol: Protocol, rounds: int | None) -> Protocol:
    """The same protocol with fewer rounds and the same name; its rounds have the same results."""
    return protocol if rounds is None else replace(protocol, rounds=min(rounds, protocol.rounds))
