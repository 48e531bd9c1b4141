"""Protocols: every key is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.errors import SpinalError
from spinal.experiments import load_protocol, protocol_names, protocol_text


@pytest.mark.parametrize("name", protocol_names())
def test_shipped_protocols_load(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name
    assert protocol.title


def test_the_paper_s_mnist() -> None:
    p = load_protocol("mnist")
    assert (p.initial, p.batch, p.rounds, p.pool, p.validation) == (20, 10, 98, 40000, 5000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bacth = 5", "unknown key 'bacth': did you mean 'batch'"),
        ("[network]\nwidht = 2", "did you mean 'width'"),
        ("[network.training]\nlearning_rat = 1", "did you mean 'learning-rate'"),
        ("[circuit.recipe.fit]\nstep = 1", "did you mean 'steps'"),
        ("rounds = 'ten'", "'ten' is not of type int"),
        ("rounds = true", "is not of type int"),
        ("[network]\nretrain = 'never'", "'never' is none of 'scratch', 'continue'"),
        ("[network]\npreset = 'best'", "'best' is none of tuned"),
        ("initial = 0", "initial and batch must be 1 or more"),
        ("rounds = ", "not a TOML file"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SpinalError, match=message):
        load_protocol(path)


def test_a_copied_protocol_can_be_edited(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        protocol_text("digits").replace("batch = 10", "batch = 7")
        + "\n[circuit.recipe]\nscale = 2\n\n[network.training]\nmax-steps = 4000\n"
    )
    mine = load_protocol(path)
    assert (mine.name, mine.batch, mine.recipe().scale) == ("mine", 7, 2.0)
    assert mine.training().max_steps == 4000


def test_unknown_protocols_get_a_suggestion() -> None:
    with pytest.raises(SpinalError, match="did you mean 'digits'"):
        load_protocol("digit")
    with pytest.raises(SpinalError, match="no such protocol file"):
        load_protocol("nowhere.toml")
