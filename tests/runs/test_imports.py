"""Runs and reports are read without torch, a model or an experiment."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import pkgutil, sys, {room}
for module in pkgutil.walk_packages({room}.__path__, "{room}."):
    __import__(module.name)
heavy = ("torch", "spinal.learner", "spinal.experiments")
print(sorted(set(heavy) & set(sys.modules)))
"""


@pytest.mark.parametrize("room", ["spinal.runs", "spinal.report"])
def test_no_module_loads_a_model(room: str) -> None:
    command = [sys.executable, "-c", _SCRIPT.format(room=room)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
