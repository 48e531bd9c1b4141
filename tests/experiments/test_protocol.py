"""Protocols: every key is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spinal.acquisition import make_acquisition
from spinal.circuits.recipe import PAPER, PAPER_MNIST
from spinal.errors import SpinalError
from spinal.experiments import load_protocol, protocol_names, protocol_text
from spinal.experiments.protocol import scale_names, with_spn
from spinal.networks import SLIM
from spinal.posteriors import make_posterior
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
    assert {"tuned", "paper", "cpu"} <= set(scale_names(name))
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


@pytest.mark.parametrize("name", [n for n in protocol_names() if "paper" in scale_names(n)])
def test_the_scale_paper_runs_the_paper_s_method(name: str) -> None:
    paper = load_protocol(f"{name}@paper")
    assert paper.acquisition_names[0] == "max-entropy"
    assert paper.acquisition_names[1:] in (["variation-ratio"], [])
    assert (paper.acquisition_names[1:] == []) == (name == "cifar10-5k")
    for function in paper.acquisition_names:
        plain = make_acquisition(function, **paper.acquisition_settings(function))
        assert (plain.sharpness, plain.power) == (1.0, None)  # type: ignore[attr-defined]
    recipe = paper.recipe()
    assert recipe == (PAPER_MNIST if name == "mnist" else PAPER)
    # Its library's defaults where the paper is silent: scales of 1, locations drawn at random.
    assert (recipe.scale, recipe.learn_scale, recipe.start) == (1.0, False, "random")
    assert (recipe.leaf_dropout, recipe.fit.leaf_dropout) == (
        (0.05,) * 2 if name == "mnist" else (0.3,) * 2
    )
    assert (recipe.sums, recipe.leaves) == ((16, 32, 32, 64, 64), 16)
    assert (paper.stratified, paper.candidates, paper.network.retrain) == (False, None, "scratch")
    posterior = make_posterior("spn", **paper.posterior_settings("spn"))
    assert posterior.recipe == recipe  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["digits", "mnist@cpu", "cifar10-1k@small", "svhn-1k@paper"])
def test_the_paper_s_spn_or_the_tuned_one_at_any_scale(name: str) -> None:
    protocol = load_protocol(name)
    paper, tuned = with_spn(protocol, "paper"), with_spn(protocol, "tuned")
    assert (paper.name, tuned.name) == (f"{name}-paper-spn", f"{name}-tuned-spn")
    assert paper.recipe() == (PAPER_MNIST if name == "mnist@cpu" else PAPER)
    assert paper.acquisition_names == ["max-entropy", "variation-ratio"]
    assert "recipe" in paper.posterior_settings("spn")
    assert "recipe" not in tuned.posterior_settings("spn")
    assert tuned.acquisition_names == []
    for other in (paper, tuned):
        same = {"posterior": {}, "acquisition": {}, "name": name, "title": ""}
        assert replace(other, **same) == replace(protocol, **same)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cifar10-1k", "fashion-mnist-1k", "svhn-1k"])
def test_the_scale_small_has_the_paper_s_label_counts(name: str) -> None:
    small, paper = load_protocol(f"{name}@small"), load_protocol(f"{name}@paper")
    for field in ("initial", "batch", "rounds", "pool", "validation", "test", "paper"):
        assert getattr(small, field) == getattr(paper, field), field
    augment = {"svhn-1k": "shift", "fashion-mnist-1k": "flip", "cifar10-1k": "shift-flip"}
    assert small.training().augment == augment[name]
    steps = {"svhn-1k": [300, 300], "fashion-mnist-1k": [500, 1250], "cifar10-1k": [500, 782]}
    assert [small.training().steps(n) for n in (1000, 10_000)] == steps[name]
    differ = ("augment", "cutout", "epochs", "min_steps", "max_steps")
    same = {field: getattr(SLIM, field) for field in differ}
    assert replace(small.training(), **same) == SLIM  # type: ignore[arg-type]
    assert (small.network.retrain, small.candidates) == ("continue", 10_000)
    assert small.posterior_settings("spn")["reserve"] == 100


def test_mnist_at_the_scale_small_has_the_paper_s_label_counts() -> None:
    small, paper = load_protocol("mnist@small"), load_protocol("mnist@paper")
    for field in ("initial", "batch", "rounds", "pool", "validation", "test", "paper"):
        assert getattr(small, field) == getattr(paper, field), field
    assert small.network.options == paper.network.options
    assert [small.training().steps(n) for n in (20, 1000)] == [50, 50]
    assert (small.network.retrain, small.candidates) == ("continue", 1000)


@pytest.mark.parametrize("dataset", ["cifar10", "fashion-mnist", "svhn"])
def test_batches_of_200_at_the_scale_small(dataset: str) -> None:
    small, paper = (load_protocol(f"{dataset}-batchbald@{scale}") for scale in ("small", "paper"))
    for field in ("initial", "batch", "rounds", "pool", "validation", "test", "paper"):
        assert getattr(small, field) == getattr(paper, field), field
    assert [small.training().steps(n) for n in (200, 2000)] == [300, 300]
    larger = load_protocol(f"{dataset}-1k@small")
    assert small.training().augment == larger.training().augment
    assert small.training().cutout == larger.training().cutout
    assert small.network.options == {"width": 1.0}
    assert (small.network.retrain, small.candidates) == ("continue", 10_000)
    assert "reserve" not in small.posterior_settings("spn")


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
