"""Protocols: what an experiment is, as a TOML file in which every key is checked.

A file may have scales: tables of what differs from the rest of it, ``[scale.paper]`` and so on,
which ``name@paper`` chooses. Without one, the scale is `DEFAULT_SCALE`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from spinal.circuits import RECIPES, Recipe
from spinal.errors import SpinalError, suggestion
from spinal.networks import NETWORKS, PAPER_LENET, PAPER_VGG, TUNED, TrainSettings
from spinal.pretrained import backbone_names, is_backbone
from spinal.settings import from_mapping, to_mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Settings that train, at full size. It needs no table where it is what the file says anyway.
DEFAULT_SCALE = "tuned"

TRAINING: dict[str, TrainSettings] = {
    "tuned": TUNED,
    "paper-lenet": PAPER_LENET,
    "paper-vgg": PAPER_VGG,
}


@dataclass(frozen=True)
class NetworkProtocol:
    """The network and its training.

    Attributes:
        name: from `spinal.networks.NETWORKS`; or a backbone (`spinal.pretrained`), on whose
            features one dense layer is trained.
        width: factor on its channels and features.
        preset: the training settings to start from: ``tuned``, ``paper-lenet``, ``paper-vgg``.
        training: what differs from the preset.
        retrain: each round from ``scratch``, or ``continue``.
        early_stopping: keep the weights that are best on the validation set.
    """

    name: str = "lenet"
    width: float = 1.0
    preset: str = "tuned"
    training: dict[str, Any] = field(default_factory=dict)
    retrain: Literal["scratch", "continue"] = "scratch"
    early_stopping: bool = False

    @property
    def is_backbone(self) -> bool:
        """Whether points are features of pretrained networks."""
        return self.name not in NETWORKS and is_backbone(self.name)

    @property
    def architecture(self) -> str:
        """The network that is trained."""
        return "dense" if self.is_backbone else self.name


@dataclass(frozen=True)
class CircuitProtocol:
    """The sum-product network.

    Attributes:
        preset: the recipe to start from, of `spinal.circuits.RECIPES`.
        recipe: what differs from it.
        grid: on which the features lie; the smallest that fits, if not given.
        masks: posterior samples by leaf dropout; none unless given (BALD needs some).
        dropout: rate of those.
        sharpness: how much sharper than it predicts the posterior is when points are ranked.
    """

    preset: str = "default"
    recipe: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, int] | None = None
    masks: int | None = None
    dropout: float | None = None
    sharpness: float = 30.0


@dataclass(frozen=True)
class Protocol:
    """An experiment, but for method, acquisition function and seed.

    Attributes:
        name: of the folder with its runs.
        title: for tables and plots.
        dataset: from `spinal.data.dataset_names`.
        initial: labelled points at the start.
        batch: points asked in a round.
        rounds: how often.
        pool: points that may be asked; None: what is left.
        validation: points kept for early stopping and tuning.
        test: points of the predefined test set that accuracy is measured on; None: all.
        stratified: the same number of each class in the initial set.
        candidates: points of the pool that are assessed in a round; None: all.
        samples: networks that MC Dropout draws, K; its own number, if None.
        paper: the table of the paper that stands beside the results, of `spinal.experiments.paper`.
        network, circuit: see there.
    """

    name: str
    title: str = ""
    dataset: str = "digits"
    initial: int = 20
    batch: int = 10
    rounds: int = 10
    pool: int | None = None
    validation: int = 0
    test: int | None = None
    stratified: bool = False
    candidates: int | None = None
    samples: int | None = None
    paper: str | None = None
    network: NetworkProtocol = field(default_factory=NetworkProtocol)
    circuit: CircuitProtocol = field(default_factory=CircuitProtocol)

    def __post_init__(self) -> None:
        if self.initial < 1 or self.batch < 1 or self.rounds < 0:
            raise SpinalError(f"{self.name}: initial and batch must be 1 or more, rounds 0 or more")
        if self.network.architecture not in NETWORKS:
            hint = suggestion(self.network.name, [*NETWORKS, *backbone_names()])
            raise SpinalError(f"{self.name}: no network {self.network.name!r}: {hint}")
        # The presets and what differs from them are looked up now, so that a mistake in a file is
        # found before anything is trained.
        self.training()
        self.recipe()

    def training(self) -> TrainSettings:
        """The settings of the network's training."""
        base = _preset(TRAINING, self.network.preset, f"{self.name}: network, preset")
        return from_mapping(
            TrainSettings, self.network.training, f"{self.name}: network.training", base
        )

    def recipe(self) -> Recipe:
        """The settings of the circuit."""
        base = _preset(RECIPES, self.circuit.preset, f"{self.name}: circuit, preset")
        return from_mapping(Recipe, self.circuit.recipe, f"{self.name}: circuit.recipe", base)

    def to_mapping(self) -> dict[str, Any]:
        """As plain values, for TOML or JSON."""
        return to_mapping(self)


def protocol_names() -> list[str]:
    """The protocols that come with spinal."""
    return sorted(
        path.name.removesuffix(".toml") for path in _shipped() if path.name.endswith("toml")
    )


def load_protocol(name_or_path: str | Path) -> Protocol:
    """A protocol that comes with spinal, by name, or any TOML file; ``@`` and a scale may follow.

    Raises:
        SpinalError: if there is none, or something in it is wrong; it says what, and what may
            have been meant.
    """
    where, scale = _split_scale(str(name_or_path))
    name, values = _read(where)
    scales = _scales(where, values)
    if scale not in scales:
        raise SpinalError(f"{where}: no scale {scale!r}: {suggestion(scale, scales)}")
    # Every scale is checked, whichever is wanted: a mistake in a file is found at its first use.
    made = {each: _at_scale(name, where, values, each, scales[each]) for each in scales}
    return made[scale]


def scale_names(name_or_path: str | Path) -> list[str]:
    """The scales that a protocol comes at; `DEFAULT_SCALE` is always among them."""
    where, _ = _split_scale(str(name_or_path))
    return list(_scales(where, _read(where)[1]))


def _split_scale(text: str) -> tuple[str, str]:
    where, _, scale = text.rpartition("@")
    # An @ may as well be part of a folder's or a file's name.
    return (
        (where, scale) if where and "/" not in scale and "." not in scale else (text, DEFAULT_SCALE)
    )


def _read(where: str) -> tuple[str, dict[str, Any]]:
    """Name and content of a protocol's file."""
    path = Path(where)
    if path.suffix == ".toml":
        if not path.is_file():
            raise SpinalError(f"{path}: no such protocol file")
        text, name = path.read_text(encoding="utf-8"), path.stem
    else:
        name = where
        if name not in protocol_names():
            hint = suggestion(name, protocol_names())
            raise SpinalError(f"no protocol {name!r}: {hint}, or give the path of a .toml file")
        text = protocol_text(name)
    try:
        return name, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpinalError(f"{where}: not a TOML file: {error}") from error


def _scales(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    scales = values.get("scale", {})
    if not isinstance(scales, dict) or not all(isinstance(each, dict) for each in scales.values()):
        raise SpinalError(f"{where}, scale: give tables, such as [scale.cpu]")
    return {DEFAULT_SCALE: {}, **scales}


def _at_scale(
    name: str, where: str, values: Mapping[str, Any], scale: str, different: Mapping[str, Any]
) -> Protocol:
    common = {"name": name, **values}
    common.pop("scale", None)
    if scale == DEFAULT_SCALE:
        return from_mapping(Protocol, _merged(common, different), where)
    named = {"name": f"{name}@{scale}", "title": f"{common.get('title', name)} ({scale})"}
    merged = _merged({**common, **named}, different)
    return from_mapping(Protocol, merged, f"{where}@{scale}")


def _merged(values: Mapping[str, Any], different: Mapping[str, Any]) -> dict[str, Any]:
    """``values``, with ``different`` taking their place, table by table."""
    merged = dict(values)
    for key, value in different.items():
        old = merged.get(key)
        both_tables = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(old, value) if both_tables else value  # type: ignore[arg-type]
    return merged


def protocol_text(name: str) -> str:
    """The TOML file of a protocol that comes with spinal: to be copied and edited."""
    return (resources.files("spinal.experiments") / "protocols" / f"{name}.toml").read_text("utf-8")


def shortened(protocol: Protocol, rounds: int | None) -> Protocol:
    """The same protocol with fewer rounds, under the same name: the rounds it has are the same."""
    return protocol if rounds is None else replace(protocol, rounds=min(rounds, protocol.rounds))


def _shipped() -> Any:
    return (resources.files("spinal.experiments") / "protocols").iterdir()


def _preset(table: dict[str, Any], name: str, where: str) -> Any:
    if name not in table:
        raise SpinalError(f"{where}: {name!r} is none of {', '.join(table)}")
    return table[name]
