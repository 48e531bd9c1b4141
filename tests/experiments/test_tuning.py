"""Tuning: the paper's values, the same winner every time, and the test set never read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import filelock
import numpy as np
import pytest

from spinal import ActiveLearner, Pool, load_dataset
from spinal.commands.tune import Searches
from spinal.commands.tune import tune as command
from spinal.data import make_splits
from spinal.errors import SpinalError
from spinal.experiments import Protocol, load_protocol, protocol_names
from spinal.experiments.protocol import NetworkProtocol
from spinal.experiments.tuning import (
    OptunaSearch,
    PaperSearch,
    Tuned,
    trials,
    tune,
    tuned_text,
    tuner,
)
from spinal.experiments.tuning.searches import Tried, paper_values
from spinal.experiments.tuning.trials import Outcome, Setting, training_split
from spinal.experiments.tuning.tuner import applied, default_labels
from spinal.networks import build_network

PROTOCOL = Protocol(
    "tiny", initial=20, batch=10, rounds=4, pool=200, validation=100,
    network=NetworkProtocol(width=0.25, training={"min_steps": 30, "max_steps": 30}),
    posterior={"recipe": {"sums": [4, 4], "fit": {"steps": 20}}},
)  # fmt: skip
FEW = PaperSearch(learning_rates=(0.001, 0.02), dropouts=(0.05, 0.5), sizes=())


class Oracle:
    """Assesses settings by a formula, and remembers them."""

    def __init__(self) -> None:
        self.seen: list[Setting] = []

    def __call__(self, settings: Sequence[Setting]) -> list[Tried]:
        self.seen += settings
        return [Tried(s, [Outcome(self.accuracy(s), 1.0)] * 2) for s in settings]

    @staticmethod
    def accuracy(setting: Setting) -> float:
        rate, dropout, *_ = [*setting.values(), 0.5]
        return 0.9 - abs(rate - 0.03) - abs(dropout - 0.2) ** 2


def test_the_paper_s_values() -> None:
    """Its appendix: the values, their steps, and the dropout rate that learning rates had."""
    mnist = paper_values(load_protocol("mnist"), "network")
    np.testing.assert_allclose(mnist.learning_rates, np.arange(1, 101) * 0.001)
    assert mnist.beside == mnist.dropouts == (0.25, 0.5)
    assert mnist.sizes == (256, 512)  # beside the 128 of the network
    cifar10 = paper_values(load_protocol("cifar10-1k"), "network")
    assert (set(cifar10.learning_rates), cifar10.dropouts) == ({0.01, 0.001}, (0.25, 0.3, 0.5))
    assert cifar10.sizes == (256,)  # beside 512
    for spelling in ("cifar-10", "CIFAR_10"):
        protocol = load_protocol("cifar10-1k", [f'dataset="{spelling}"'])
        assert paper_values(protocol, "network") == cifar10
    fashion = paper_values(load_protocol("fashion-mnist-1k"), "network")
    assert (set(fashion.learning_rates), fashion.dropouts) == ({0.1, 0.001, 0.0005}, ())
    assert fashion.beside == (None,)  # as it is in the protocol
    circuit = paper_values(load_protocol("mnist"), "circuit")
    np.testing.assert_allclose(circuit.learning_rates, np.arange(0.005, 0.1, 0.01))
    np.testing.assert_allclose(circuit.dropouts, np.arange(1, 11) * 0.05)
    assert circuit.beside == (0.1,)


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_has_a_procedure(name: str) -> None:
    protocol = load_protocol(name)
    for part in ("network", "circuit"):
        oracle = Oracle()
        PaperSearch().run(protocol, part, oracle)
        assert len(oracle.seen) == PaperSearch().size(protocol, part)
        assert len({tuple(each.items()) for each in oracle.seen}) == len(oracle.seen)


def test_the_learning_rate_first_and_then_dropout() -> None:
    oracle = Oracle()
    search = PaperSearch(learning_rates=(0.01, 0.03, 0.05))
    tried = search.run(load_protocol("mnist"), "circuit", oracle)
    rates = [tuple(setting.values()) for setting in oracle.seen]
    assert rates[:3] == [(0.01, 0.1), (0.03, 0.1), (0.05, 0.1)]
    assert rates[3:] == [(0.03, d / 100) for d in range(5, 55, 5) if d != 10]
    assert max(tried, key=lambda each: each.accuracy).setting == {
        "fit.learning-rate": 0.03, "fit.leaf-dropout": 0.2,
    }  # fmt: skip


def test_the_size_of_the_dense_layer_comes_last() -> None:
    oracle = Oracle()
    search = PaperSearch(learning_rates=(0.01, 0.03))
    search.run(load_protocol("mnist@cpu"), "network", oracle)
    best = {"learning-rate": 0.03, "dropout": 0.25}
    assert oracle.seen[-2:] == [{**best, "features": 128}, {**best, "features": 256}]  # width 0.5
    assert "sizes 256, 512 of the dense layer" in search.describe(load_protocol("mnist"), "network")
    assert all("features" not in setting for setting in oracle.seen[:-2])


def test_another_size_is_built_and_gets_another_grid() -> None:
    protocol = load_protocol("mnist")
    changed = applied(protocol, "network", {"features": 256})
    assert (changed.network.features, changed.network.options) == (
        256,
        {"width": 1.0, "features": 256},
    )
    assert "grid" in protocol.posterior
    assert "grid" not in changed.posterior
    network = build_network("lenet", (28, 28, 1), 10, **changed.network.options)
    assert network.linear_head()[0].shape == (10, 256)
    changed.recipe().build(256, 10)


def test_settings_take_the_place_of_those_before() -> None:
    training = {"dropout": [0.0, 0.1, 0.2, 0.3, 0.4], "learning_rate": 0.5, "epochs": 7}
    protocol = Protocol("p", network=NetworkProtocol("vgg", training=training))
    changed = applied(protocol, "network", {"learning-rate": 0.1, "dropout": 0.6}).training()
    assert changed.dropout == (0.0, 0.1, 0.2, 0.6, 0.6)  # the layers that the paper tuned
    assert (changed.learning_rate, changed.epochs) == (0.1, 7)
    recipe = applied(protocol, "circuit", {"fit.learning-rate": 0.1, "scale": 2.0}).recipe()
    assert (recipe.fit.learning_rate, recipe.scale) == (0.1, 2.0)
    assert applied(protocol, "circuit", {}) == protocol


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The datasets that were loaded while `tuned` was made."""
    return []


@pytest.fixture(scope="module")
def tuned(loaded: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Tuned, Path]:
    """What tuning comes to on a dataset that has no test set, and the file of trials."""
    digits = load_dataset("digits")
    parts = ("name", "train_images", "train_labels", "classes")
    without = SimpleNamespace(**{part: getattr(digits, part) for part in parts})

    def load(name: str, data_dir: Path | None, data: None) -> SimpleNamespace:
        loaded.append(name)
        return without

    path = tmp_path_factory.mktemp("tuned") / "tiny-tuned.trials.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        for module in (trials, tuner):
            patch.setattr(module, "load_dataset", load)
        return tune(PROTOCOL, FEW, path, workers=1), path


def accuracies(path: Path) -> dict[str, float]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["key"]: line["accuracy"] for line in lines}


def test_the_winner_has_the_best_mean_of_two_runs(tuned: tuple[Tuned, Path]) -> None:
    found, path = tuned
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for part, best in zip(("network", "circuit"), (p.best for p in found.parts), strict=True):
        means: dict[str, list[float]] = {}
        for line in (line for line in lines if line["part"] == part):
            means.setdefault(json.dumps(line["setting"]), []).append(line["accuracy"])
        # Own; both learning rates at the paper's dropout rates; the dropout rates that are left.
        assert len(means) == {"network": 1 + 2 * 2 + 1, "circuit": 1 + 2 * 1 + 2}[part]
        assert {len(values) for values in means.values()} == {2}
        assert best.accuracy == max(np.mean(values) for values in means.values())
        values = means[json.dumps(best.setting)]
        assert best.spread == pytest.approx(np.std(values, ddof=1))
    assert found.parts[0].best.setting["learning-rate"] == 0.02  # 0.001 learns next to nothing
    assert found.labels == default_labels(PROTOCOL) == 40


def test_accuracy_is_that_of_a_learner_on_the_validation_set(tuned: tuple[Tuned, Path]) -> None:
    digits = load_dataset("digits")
    known, held = training_split(PROTOCOL, digits, 40, 1)
    learner = ActiveLearner(
        Pool(digits.train_images, digits.classes, members=known), ("lenet", {"width": 0.25}),
        "random", seed=1, training=PROTOCOL.training(),
    )  # fmt: skip
    learner.tell(known, digits.train_labels[known])
    learner.fit()
    right = learner.predict(digits.train_images[held]) == digits.train_labels[held]
    assert tuned[0].parts[0].own.outcomes[1].accuracy == right.mean()


def test_the_winner_is_a_protocol_file(tuned: tuple[Tuned, Path], tmp_path: Path) -> None:
    found, _ = tuned
    path = tmp_path / "mine.toml"
    path.write_text(tuned_text(found, "spinal tune tiny"), encoding="utf-8")
    mine = load_protocol(path)
    assert mine.training() == found.protocol.training()
    assert mine.recipe() == found.protocol.recipe()
    best = found.parts[0].best
    assert mine.training().learning_rate == best.setting["learning-rate"]
    assert mine.training().dropout == best.setting["dropout"]
    assert mine.training().max_steps == 30
    assert (mine.name, mine.pool, mine.validation) == ("mine", 200, 100)
    comments = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    text = "\n".join(comments)
    assert "`spinal tune tiny`" in text
    assert f"{100 * best.accuracy:.2f} ± {100 * best.spread:.2f}" in text
    assert "100 validation points, with 40 labels, seeds 0, 1" in text


def test_what_is_known_is_not_tried_again(
    tuned: tuple[Tuned, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, finished = tuned
    path = tmp_path / "cut.jsonl"
    lines = finished.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:9] + lines[11:]))
    made, assess = [], trials.assess
    monkeypatch.setattr(trials, "assess", lambda *args: made.append(args[0]) or assess(*args))
    again = tune(PROTOCOL, FEW, path, workers=1)
    assert len(made) == 2
    assert again == found
    assert accuracies(path) == accuracies(finished)


@pytest.mark.long
def test_workers_change_nothing(tuned: tuple[Tuned, Path], tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    fewer = PaperSearch(learning_rates=(0.02,), dropouts=(), sizes=())
    tune(PROTOCOL, fewer, path, workers=2, parts=["network"], seeds=[1])
    found = accuracies(path)
    assert len(found) == 3
    assert found.items() <= accuracies(tuned[1]).items()


def test_the_test_set_is_not_read(tuned: tuple[Tuned, Path], loaded: list[str]) -> None:
    """All of it was done on a dataset without one, which the tests above find to be the same."""
    assert loaded == ["digits"] * len(loaded)
    assert len(loaded) >= 1 + 2 * 6  # before the trials, and in each of a network
    assert len(accuracies(tuned[1])) == 2 * (6 + 5)


def test_training_that_diverges_loses(tmp_path: Path) -> None:
    search = PaperSearch(learning_rates=(1e9, 0.02), dropouts=(), sizes=())
    path = tmp_path / "t.jsonl"
    options = {"parts": ["network"], "seeds": [0], "labels": 20, "workers": 1}
    found = tune(PROTOCOL, search, path, **options)
    worst = found.parts[0].tried[-1]
    assert worst.setting["learning-rate"] == 1e9
    assert worst.nll == float("inf")
    assert tune(PROTOCOL, search, path, **options) == found


@pytest.mark.parametrize("validation", [0, 150])
def test_points_to_learn_from_and_to_be_judged_by(validation: int) -> None:
    digits = load_dataset("digits")
    protocol = Protocol("p", pool=500, initial=20, validation=validation)
    splits = make_splits(1297, pool=500, initial=20, validation=validation, seed=3)
    known, held = training_split(protocol, digits, 60, 3)
    assert len(held) == validation or len(held) == 100
    assert not set(known) & set(held)
    assert set(splits.initial) <= set(known) <= set(splits.members)
    assert set(held) == set(splits.validation) or set(held) <= set(splits.pool)
    assert set(training_split(protocol, digits, 40, 3)[0]) <= set(known)
    with pytest.raises(SpinalError, match="cannot be tuned with 5000 labels: it begins with 20"):
        training_split(protocol, digits, 5000, 3)
    with pytest.raises(SpinalError, match="cannot be tuned with 10 labels"):
        training_split(protocol, digits, 10, 3)


def test_optuna_proposes_the_same_again_and_goes_on() -> None:
    pytest.importorskip("optuna")
    protocol = load_protocol("digits")
    for part in ("network", "circuit"):
        short, long, other = Oracle(), Oracle(), Oracle()
        OptunaSearch(8, seed=1).run(protocol, part, short)
        tried = OptunaSearch(32, seed=1).run(protocol, part, long)
        OptunaSearch(8, seed=2).run(protocol, part, other)
        assert short.seen == long.seen[:8] != other.seen
        values = [each.accuracy for each in tried]
        assert np.mean(values[16:]) > np.mean(values[:8])  # it learns from what it is told


def test_optuna_on_digits(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    path = tmp_path / "optuna.jsonl"
    found = tune(PROTOCOL, OptunaSearch(3), path, seeds=[0], labels=30, workers=1)
    assert len(accuracies(path)) == 2 * (1 + 3)
    assert found.protocol.training() is not None
    assert tune(PROTOCOL, OptunaSearch(3), path, seeds=[0], labels=30, workers=1) == found


def test_the_command_writes_and_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = tuned_text(Tuned(PROTOCOL, [], 0, 0, [0]), "nothing")
    Path("tiny.toml").write_text(text, encoding="utf-8")
    options = {"dropouts": "0.1", "sizes": "256", "labels": 20, "seeds": "0", "workers": 1}
    command("tiny.toml", learning_rates=".02", **options)
    shown = capsys.readouterr().out
    assert "network 1/5: as before, seed 0: accuracy" in shown
    assert "spinal run tiny-tuned.toml" in shown
    assert load_protocol("tiny-tuned.toml").name == "tiny-tuned"
    first = Path("tiny-tuned.toml").read_bytes()
    command("tiny.toml", learning_rates=".02", **options)
    assert Path("tiny-tuned.toml").read_bytes() == first
    assert "network 1/5" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "digitz"}, "did you mean 'digits'"),
        ({"learning_rates": "fast"}, "--learning-rates 'fast': give numbers"),
        ({"learning_rates": "0"}, "0 is out of range: more than 0"),
        ({"dropouts": "0.5,1"}, "1 is out of range: from 0 to below 1"),
        ({"sizes": "128.5"}, "give integers"),
        ({"trials": 5}, "add --search optuna"),
        ({"search": Searches.optuna, "dropouts": "0"}, "do not go with Optuna"),
        ({"search": Searches.optuna, "trials": 0}, "give 1 or more"),
        ({"labels": 9000}, "cannot be tuned with 9000 labels"),
        ({"out": Path("here")}, r"a protocol file ends in \.toml"),
        ({"out": Path("mine.toml")}, "would be overwritten"),
        ({"protocol": "mine.toml", "out": Path("mine.toml")}, "would be overwritten"),
    ],
)
def test_mistakes_are_named(
    options: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("")
    with pytest.raises(SpinalError, match=message):
        command(**{"protocol": "digits", **options})
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["mine.toml"]


def test_files_of_trials_are_guarded(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with (
        filelock.FileLock(tmp_path / ".trials.jsonl.lock"),
        pytest.raises(SpinalError, match=r"trials\.jsonl: another process"),
    ):
        tune(PROTOCOL, FEW, path)
    for damage in ("{", "5", '{"key": "x"}'):
        path.write_text(damage)
        with pytest.raises(SpinalError, match="delete"):
            tune(PROTOCOL, FEW, path)
