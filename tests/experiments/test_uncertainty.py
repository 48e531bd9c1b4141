"""Uncertainty alone: digits against digits with their pixels out of place; no downloads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from spinal.commands.app import app
from spinal.data import load_dataset
from spinal.errors import SpinalError
from spinal.experiments import uncertainty
from spinal.experiments.scales import DEFAULT_SCALE
from spinal.experiments.uncertainty import METHODS, PAIRS, Pair, run_pairs
from spinal.networks import TUNED, build_network, compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.report.uncertainty import write_uncertainty_report
from spinal.runs import read_lines

TINY = """
title = "Tiny & small"
labels = 150
test = 100

[network]
width = 0.25
training = { epochs = 10, min-steps = 1 }

[posterior]
samples = 3
members = 2
recipe = { leaves = 4, sums = [4, 4, 4, 4], balance = 0, fit = { steps = 20 } }
"""


def load(folder: Path, text: str = TINY) -> Pair:
    path = folder / "tiny.toml"
    path.write_text(text)
    return PAIRS.load(path)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uncertainty")
    run_pairs([load(folder)], [0, 1], folder / "out")
    return folder / "out"


def parts(out: Path, seed: int = 0) -> dict[str, dict[str, Any]]:
    lines = read_lines(out / "tiny" / f"seed-{seed}" / "parts.jsonl")
    return {line["method"]: line for line in lines}


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_each_method_has_a_line_with_what_it_can_tell(out: Path) -> None:
    found = parts(out)
    assert list(found) == list(METHODS)
    plain = {"entropy", "margin"}
    assert set(found["deterministic"]["scores"]) == plain
    assert set(found["ensemble"]["scores"]) == plain | {"mutual-information"}
    assert set(found["spn-cnn"]["scores"]) == plain | {"mutual-information", "log-density"}
    for part in found.values():
        assert part["accuracy"] > 0.2
        for where in ("inside", "outside"):
            assert sum(part["entropy"][where]["histogram"]) == 100
    assert not (out / "tiny" / "seed-0" / "network.safetensors").exists()


def test_deterministic_again_by_hand(out: Path) -> None:
    """The network trained anew from the settings; accuracy and entropies without our scores."""
    torch.set_num_threads(1)
    digits = load_dataset("digits")
    orders = [
        np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")
        for seed, n in zip(np.random.SeedSequence(0).spawn(2), (1297, 500), strict=True)
    ]
    chosen, test = np.sort(orders[0][:150]), np.sort(orders[1][:100])
    images, labels = digits.train_images[chosen], digits.train_labels[chosen]
    seed = derived_seed(0, 0)
    network = build_network("lenet", (8, 8, 1), 10, width=0.25, seed=seed)
    network.preprocess.fit(images)
    train(network, images, labels, replace(TUNED, epochs=10, min_steps=1), seed=seed)
    logits = predict_logits(network, compute_features(network, digits.test_images[test]))
    p = logits.double().softmax(1).numpy()
    part = parts(out)["deterministic"]
    assert part["accuracy"] == (p.argmax(1) == digits.test_labels[test]).mean()
    entropies = -(p * np.log(p)).sum(1)
    assert part["entropy"]["inside"]["mean"] == pytest.approx(entropies.mean(), rel=1e-5)
    expected = np.histogram(entropies, 200, (0, np.log(10)))[0]
    assert np.abs(np.cumsum(expected - part["entropy"]["inside"]["histogram"])).max() <= 1


def test_permuted_digits_are_less_certain(out: Path) -> None:
    for method in ("ensemble", "deterministic"):
        part = parts(out)[method]
        assert part["scores"]["entropy"]["auroc"] > 0.6
        assert part["entropy"]["outside"]["mean"] > part["entropy"]["inside"]["mean"]


def test_what_is_finished_is_not_done_again(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(out)
    monkeypatch.setattr(uncertainty, "load_dataset", None)  # whoever trains needs data
    run_pairs([load(tmp_path)], [0, 1], out)
    assert files(out) == before


def test_what_was_stopped_goes_on_to_the_same_end(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Pair.make_posterior

    def killed(self: Pair, method: str) -> Any:
        if method == METHODS[1]:
            raise KeyboardInterrupt
        return original(self, method)

    pair = load(tmp_path)
    monkeypatch.setattr(Pair, "make_posterior", killed)
    with pytest.raises(KeyboardInterrupt):
        run_pairs([pair], [0], tmp_path)
    assert list(parts(tmp_path)) == [METHODS[0]]
    monkeypatch.setattr(Pair, "make_posterior", original)
    monkeypatch.setattr("spinal.experiments.uncertainty.networks.train", None)  # it was kept
    run_pairs([replace(pair, posterior=dict(pair.posterior))], [0], tmp_path)
    expected, found = parts(out), parts(tmp_path)
    for part in (*expected.values(), *found.values()):
        part.pop("seconds")
    assert found == expected


def test_other_settings_do_not_mix(out: Path, tmp_path: Path) -> None:
    (out / "tiny" / "seed-0" / "parts.jsonl").rename(out / "kept")
    with pytest.raises(SpinalError, match=r"other settings \(experiment\.posterior\.samples was 3"):
        run_pairs([load(tmp_path, TINY.replace("samples = 3", "samples = 4"))], [0], out)
    (out / "kept").rename(out / "tiny" / "seed-0" / "parts.jsonl")


def test_report_is_the_same_whenever_it_is_made(out: Path, tmp_path: Path) -> None:
    write_uncertainty_report(out, tmp_path / "one")
    write_uncertainty_report(out, tmp_path / "two")
    made = files(tmp_path / "one")
    assert made == files(tmp_path / "two")
    assert {"index.html", "summary.md", "tiny/densities.svg", "tiny/detection.csv"} <= set(made)
    page = made["index.html"].decode()
    assert "Tiny &amp; small" in page
    assert "--seeds 0,1" in page
    aurocs = [parts(out, seed)["ensemble"]["scores"]["entropy"]["auroc"] for seed in (0, 1)]
    shown = f"{100 * np.mean(aurocs):.2f} ± {100 * np.std(aurocs, ddof=1):.2f}"
    assert f"| Ensemble | entropy | {shown} |" in made["summary.md"].decode()


def test_command_shows_a_table(out: Path, tmp_path: Path) -> None:
    load(tmp_path)
    arguments = ["uncertainty-alone", str(tmp_path / "tiny.toml"), "--seeds", "0,1"]
    done = CliRunner(env={"COLUMNS": "160"}).invoke(app, [*arguments, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "tiny seed 1: done before" in done.output
    assert "SPN-CNN" in done.output
    assert (out / "report" / "index.html").exists()


@pytest.mark.parametrize("name", PAIRS.names())
def test_shipped_pairs_load(name: str) -> None:
    for scale in PAIRS.scales(name):
        pair = PAIRS.load(f"{name}@{scale}")
        assert pair.name == (name if scale == DEFAULT_SCALE else f"{name}@{scale}")
        assert pair.title


@pytest.mark.parametrize("name", ["svhn-cifar-10", "fashion-mnist-mnist"])
def test_the_scale_small_learns_from_all_labels_as_the_paper(name: str) -> None:
    small, paper = PAIRS.load(f"{name}@small"), PAIRS.load(f"{name}@paper")
    assert (small.labels, small.test) == (paper.labels, paper.test) == (None, None)
    assert small.training().label_smoothing == 0  # it would change the entropy
    assert small.training().steps(73_257) == 3 * 73_257 // 64 + 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('outsid = "mnist"', "did you mean 'outside'"),
        ('outside = "cifar"', "did you mean 'cifar-10'"),
        ('network = { name = "vg" }', "did you mean 'vgg'"),
        ("network = { training = { rate = 1 } }", "unknown key 'rate'"),
        ("network = { early-stopping = true }", "leave out early-stopping"),
        ("posterior = { recipe = { sums = 3 } }", "sums"),
        ("scale = { cpu = { label = 1 } }", "did you mean 'labels'"),
    ],
)
def test_mistakes_in_a_file_are_found_before_training(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(SpinalError, match=message):
        load(tmp_path, line)


def test_datasets_have_to_be_of_one_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = load_dataset("digits")
    larger = replace(digits, test_images=np.zeros((5, 9, 9, 1), np.uint8))
    monkeypatch.setattr(
        uncertainty, "load_dataset", lambda name, _: digits if name == "digits" else larger
    )
    with pytest.raises(SpinalError, match="they have to be alike"):
        run_pairs([load(tmp_path, 'outside = "mnist"')], [0], tmp_path)
