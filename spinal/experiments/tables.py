"""The tables ``[posterior]`` and ``[acquisition]`` of a protocol, checked key by key.

A protocol is run with several methods. So its tables hold settings of all posteriors and of all
acquisition functions, and each uses the settings that it has::

    [posterior]
    preset = "paper"            # the recipe of the SPN to start from
    recipe = { leaves = 8 }     # changes to it
    masks = 20                  # for the SPN
    samples = 50                # for MC Dropout

    [acquisition]
    name = "max-entropy"        # for all compatible methods
    labellings = 1000           # for BatchBALD
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from spinal.acquisition import ACQUISITIONS, make_acquisition
from spinal.circuits import RECIPES, Recipe
from spinal.errors import SpinalError, suggestion
from spinal.posteriors import POSTERIORS, make_posterior
from spinal.settings import from_mapping

Table = Mapping[str, Any]
T = TypeVar("T")


def circuit_recipe(table: Table, where: str) -> Recipe:
    """The recipe of the circuit: the preset with the changes in ``recipe``.

    Args:
        table: ``[posterior]``, or any table with the keys ``preset`` and ``recipe``.
        where: names the table in messages.
    """
    base = preset(RECIPES, table.get("preset", "default"), f"{where}, preset")
    return from_mapping(Recipe, table.get("recipe", {}), f"{where}.recipe", base)


def posterior_settings(table: Table, name: str, where: str) -> dict[str, Any]:
    """The settings in ``table`` that the posterior ``name`` has; empty for your own posterior."""
    if name not in POSTERIORS:
        return {}
    if "preset" in table or "recipe" in table:
        table = {**table, "recipe": circuit_recipe(table, where)}
    return _known(table, _settings_of(POSTERIORS[name]))


def acquisition_settings(table: Table, name: str) -> dict[str, Any]:
    """The settings in ``table`` that the function ``name`` has; empty for your own function."""
    if name not in ACQUISITIONS:
        return {}
    return _known(table, _settings_of(type(ACQUISITIONS[name]())))


def unused_settings(posterior: str, acquisition: str) -> list[str]:
    """Keys of both tables that this posterior and this function do not have.

    Returns:
        Such as ``posterior.snapshots``; with underscores and with hyphens.
    """
    unused = []
    for table, kinds, name in (
        ("posterior", POSTERIORS, posterior),
        ("acquisition", {key: type(make()) for key, make in ACQUISITIONS.items()}, acquisition),
    ):
        of_all = {key for kind in kinds.values() for key in _settings_of(kind)}
        own = _settings_of(kinds[name]) if name in kinds else set()
        for key in sorted(of_all - own):
            unused += [f"{table}.{key}", f"{table}.{key.replace('_', '-')}"]
    return unused


def check_posteriors(table: Table, where: str) -> None:
    """Refuse a key that no posterior has, or an invalid value.

    Raises:
        SpinalError: with the key, and a similar valid one.
    """
    fields = {field for kind in POSTERIORS.values() for field in _settings_of(kind)}
    check_keys(table, fields | {"preset"}, where)
    for name in POSTERIORS:
        make_posterior(name, **posterior_settings(table, name, where))


def check_acquisitions(table: Table, where: str) -> None:
    """Refuse a key that no acquisition function has, or an invalid value.

    Raises:
        SpinalError: with the key, and a similar valid one.
    """
    kinds = {type(make()) for make in ACQUISITIONS.values()}
    fields = {field for kind in kinds for field in _settings_of(kind)}
    check_keys(table, fields | {"name"}, where)
    names = table.get("name", [])
    for name in [names] if isinstance(names, str) else names:
        make_acquisition(name)
    for name in ACQUISITIONS:
        make_acquisition(name, **acquisition_settings(table, name))


def preset(presets: Mapping[str, T], name: str, where: str) -> T:
    """The preset of this name."""
    if name not in presets:
        raise SpinalError(f"{where}: {name!r} is none of {', '.join(presets)}")
    return presets[name]


def check_keys(table: Table, names: Iterable[str], where: str) -> None:
    """Refuse a key that is not one of ``names``."""
    allowed = sorted(name.replace("_", "-") for name in names)
    for key in table:
        if key.replace("_", "-") not in allowed:
            raise SpinalError(f"{where}: unknown key {key!r}: {suggestion(key, allowed)}")


def _settings_of(kind: type) -> set[str]:
    """Names of the settings of a dataclass that can be written in a file."""
    fields = dataclasses.fields(kind)
    return {field.name for field in fields if field.init and field.name != "score"}


def _known(table: Table, names: set[str]) -> dict[str, Any]:
    plain = {key.replace("-", "_"): value for key, value in table.items()}
    return {name: value for name, value in plain.items() if name in names}
