"""Runs and reports are read without torch, a model or an experiment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spinal.methods import METHODS
from spinal.report import names

_SCRIPT = """
import pkgutil, sys, {room}
for module in pkgutil.walk_packages({room}.__path__, "{room}."):
    __import__(module.name)
heavy = ("torch", "spinal.learner", "spinal.methods", "spinal.experiments")
print(sorted(set(heavy) & set(sys.modules)))
"""


@pytest.mark.parametrize("room", ["spinal.runs", "spinal.report"])
def test_no_module_loads_a_model(room: str) -> None:
    command = [sys.executable, "-c", _SCRIPT.format(room=room)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_report_knows_every_method_in_the_same_order() -> None:
    defaults = {name: acquisition for name, (_, acquisition) in names.METHODS.items()}
    assert list(defaults) == list(METHODS)
    assert defaults == {name: method.acquisition for name, method in METHODS.items()}
