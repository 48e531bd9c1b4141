"""Changes to an experiment's settings as its file is loaded: ``--set KEY=VALUE``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spinal.errors import SpinalError
from spinal.experiments import Run, execute, load_protocol, make_runs, run_grid
from spinal.experiments.full_labels import EXPERIMENTS
from spinal.experiments.uncertainty import PAIRS

#: A run that takes no time to speak of.
SHORT = ("rounds=0", "network.name=dense", "network.training.max-steps=2",
         "network.training.min-steps=1")  # fmt: skip


def test_a_change_is_as_if_the_file_said_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('dataset = "digits"\nrounds = 3\n[network]\nname = "lenet"\nwidth = 0.5\n')
    changes = ["rounds=1", "network.width = 0.25", "network.training.learning_rate=1e-3"]
    changed = load_protocol(file, changes)
    file.write_text(
        'dataset = "digits"\nrounds = 1\n[network]\nname = "lenet"\nwidth = 0.25\n'
        "[network.training]\nlearning_rate = 1e-3\n"
    )
    assert changed == load_protocol(file)


def test_values_are_toml_and_words_need_no_quotes() -> None:
    changed = load_protocol(
        "digits",
        [
            "network.name=dense", 'title="Wide = better"', "stratified=true",
            "posterior.grid=[4, 8]", "name=digits-dense",
        ],
    )  # fmt: skip
    assert changed.network.name == "dense"
    assert changed.title == "Wide = better"
    assert changed.stratified is True
    assert changed.posterior == {"grid": [4, 8]}
    assert changed.name == "digits-dense"


def test_a_change_goes_before_the_scale_and_the_last_one_wins(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("rounds = 3\n[network.training]\nbatch_size = 8\n[scale.cpu]\nrounds = 2\n")
    changed = load_protocol(
        f"{file}@cpu", ["rounds=7", "rounds=5", "network.training.batch-size=4"]
    )
    assert changed.name == "mine@cpu"
    assert changed.rounds == 5
    assert changed.network.training == {"batch_size": 4}
    assert load_protocol(f"{file}@cpu").rounds == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("network.widht=0.5", "digits, network: unknown key 'widht': did you mean 'width'"),
        ("network.width=wide", "digits, network, width: 'wide' is not of type float"),
        ("network=3", "digits, network: 3 is not of type"),
        ("network.training.learning-rat=1", "did you mean 'learning-rate'"),
        ("network.name=vg", "did you mean 'vgg'"),
        ("rounds", "is not KEY=VALUE"),
        ("rounds=", "is not KEY=VALUE"),
        ("network.width=.5", "is not KEY=VALUE"),
    ],
)
def test_errors_are_those_of_a_key_in_a_file(change: str, message: str) -> None:
    with pytest.raises(SpinalError, match=message):
        load_protocol("digits", [change])


def test_pairs_and_full_labels_can_be_changed_too() -> None:
    assert PAIRS.load("digits-permuted", ["posterior.members=2"]).posterior["members"] == 2
    assert PAIRS.load("svhn-cifar-10", ["outside=cifar10"]).outside == "cifar10"
    assert EXPERIMENTS.load("digits", ["title=Digits"]).title == "Digits"


def test_a_changed_protocol_does_not_go_on_in_the_folder_of_the_unchanged_one(
    tmp_path: Path,
) -> None:
    run = Run(load_protocol("digits", SHORT), "random", "random", 0, tmp_path)
    execute(run)
    changed = replace(run, protocol=load_protocol("digits", [*SHORT, "initial=30"]))
    with pytest.raises(SpinalError, match="made with other settings"):
        execute(changed)
    with pytest.raises(SpinalError, match="made with other settings"):
        run_grid([changed], workers=1)
    named = replace(run, protocol=load_protocol("digits", [*SHORT, "initial=30", "name=thirty"]))
    execute(named)
    assert named.rounds()[0].labels == 30
    assert named.folder.parts[-3] == "thirty"


def test_a_grid_knows_a_dataset_by_any_spelling(tmp_path: Path) -> None:
    spellings = ("digits", "Digits", "DIGITS")
    protocols = [load_protocol("digits", [*SHORT, f"dataset={s}", f"name={s}"]) for s in spellings]
    runs = make_runs(protocols, ["random"], [], [0], tmp_path)
    run_grid(runs, workers=1)
    assert len({run.rounds()[0].accuracy for run in runs}) == 1
