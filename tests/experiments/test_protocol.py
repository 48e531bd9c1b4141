"""Protocols: every key is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spinal.errors import SpinalError
from spinal.experiments import load_protocol, protocol_names, protocol_text
from spinal.experiments.protocol import scale_names
from spinal.report.paper import table_names


@pytest.mark.parametrize("name", protocol_names())
def test_shipped_protocols_load(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name
    assert protocol.title


def test_the_paper_s_mnist() -> None:
    p = load_protocol("mnist")
    assert (p.initial, p.batch, p.rounds, p.pool, p.validation) == (20, 10, 98, 40000, 5000)


@pytest.mark.parametrize("name", [name for name in protocol_names() if "cpu" in scale_names(name)])
def test_scales_share_the_task(name: str) -> None:
    assert set(scale_names(name)) == {"tuned", "paper", "cpu"}
    tuned, paper, cpu = (load_protocol(f"{name}@{s}") for s in ("tuned", "paper", "cpu"))
    assert (tuned.name, paper.name, cpu.name) == (name, f"{name}@paper", f"{name}@cpu")
    assert tuned == load_protocol(name)
    for other in (paper, cpu):
        assert (other.dataset, other.network.name) == (tuned.dataset, tuned.network.name)
        assert other.paper == tuned.paper
    # As stated, but for the settings of training; nothing of the tuned ones leaks into them.
    assert (paper.initial, paper.batch, paper.rounds) == (
        tuned.initial,
        tuned.batch,
        tuned.rounds,
    )
    assert paper.training().optimiser == "sgd"
    assert paper.training().batch_size in (100, 120)
    assert paper.recipe().fit.epochs == 650
    if tuned.paper is not None:
        assert tuned.paper in table_names()


def test_mnist_300_assesses_some_of_the_pool_or_all() -> None:
    some, all_ = load_protocol("mnist-300"), load_protocol("mnist-300@whole-pool")
    assert (some.candidates, all_.candidates) == (1000, None)
    assert replace(some, name=all_.name, title=all_.title, candidates=None) == all_


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("cifar10-1k", (1000, 1000, 9, 30000)),
        ("cifar10-5k", (5000, 5000, 4, 30000)),
        ("fashion-mnist-1k", (1000, 1000, 9, 40000)),
        ("svhn-1k", (1000, 1000, 9, 63257)),
        ("cifar10-batchbald", (200, 200, 9, 30000)),
        ("fashion-mnist-batchbald", (200, 200, 9, 40000)),
        ("svhn-batchbald", (200, 200, 9, 63257)),
    ],
)
def test_the_paper_s_budgets(name: str, budget: tuple[int, ...]) -> None:
    p = load_protocol(f"{name}@paper")
    assert (p.initial, p.batch, p.rounds, p.pool) == budget


def test_scales_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("batch = 5\n[network]\nwidth = 2.0\n[scale.small.network]\nname = 'vgg'\n")
    small = load_protocol(f"{path}@small")
    assert (small.name, small.batch) == ("mine@small", 5)
    assert (small.network.name, small.network.width) == ("vgg", 2.0)
    with pytest.raises(SpinalError, match="no scale 'smal': did you mean 'small'"):
        load_protocol(f"{path}@smal")
    path.write_text("[scale.small]\nbacth = 5\n")
    with pytest.raises(SpinalError, match=r"mine\.toml@small: unknown key 'bacth'"):
        load_protocol(path)
    path.write_text("[scale]\nsmall = 5\n")
    with pytest.raises(SpinalError, match="give tables"):
        load_protocol(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bacth = 5", "unknown key 'bacth': did you mean 'batch'"),
        ("[network]\nwidht = 2", "did you mean 'width'"),
        ("[network.training]\nlearning_rat = 1", "did you mean 'learning-rate'"),
        ("[posterior.recipe.fit]\nstep = 1", "did you mean 'steps'"),
        ("rounds = 'ten'", "'ten' is not of type int"),
        ("rounds = true", "is not of type int"),
        ("[network]\nretrain = 'never'", "'never' is none of 'scratch', 'continue'"),
        ("[network]\npreset = 'best'", "'best' is none of tuned"),
        ("initial = 0", "initial and batch must be 1 or more"),
        ("rounds = ", "not a TOML file"),
        ('learn-from = "all"', "'all' is none of 'pool', 'labels'"),
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
        + "\n[posterior.recipe]\nscale = 2\n\n[network.training]\nmax-steps = 4000\n"
    )
    mine = load_protocol(path)
    assert (mine.name, mine.batch, mine.recipe().scale) == ("mine", 7, 2.0)
    assert mine.training().max_steps == 4000


def test_unknown_protocols_get_a_suggestion() -> None:
    with pytest.raises(SpinalError, match="did you mean 'digits'"):
        load_protocol("digit")
    with pytest.raises(SpinalError, match="no such protocol file"):
        load_protocol("nowhere.toml")
