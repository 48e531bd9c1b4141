"""The examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import spinal

ROOT = Path(spinal.__file__).parent
#: Modules with examples, found by reading: importing all of them would need every extra.
MODULES = sorted(
    ".".join(("spinal", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert "spinal.learner.learner" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0
