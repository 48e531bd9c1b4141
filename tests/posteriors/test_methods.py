"""Every method with every kind of points and network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spinal import ActiveLearner, Pool
from spinal.circuits import FitSettings, Recipe
from spinal.errors import SpinalError
from spinal.experiments import load_protocol, make_runs
from spinal.methods import METHODS
from spinal.networks import TrainSettings, build_network, wrap

QUICK = TrainSettings(min_steps=15, max_steps=15)
RECIPE = Recipe(sums=(4, 4), fit=FitSettings(steps=15))
LABELS = np.arange(60) % 3


def images() -> np.ndarray:
    noise = np.random.default_rng(0).integers(0, 120, (60, 8, 8, 1))
    return (noise + 60 * LABELS[:, None, None, None]).astype(np.uint8)


def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 12)) + LABELS[:, None]


def own_network(points: np.ndarray):
    del points
    layers = [torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.ReLU()]
    head = [torch.nn.Dropout(0.3), torch.nn.Linear(16, 3)]
    return wrap(torch.nn.Sequential(*layers, *head), "2", (8, 8, 1), pretrained=False)


CASES = {
    "features, dense": (features, lambda x: build_network("dense", x.shape[1:], 3, width=0.25)),
    "images, dense": (images, lambda x: build_network("dense", x.shape[1:], 3, width=0.25)),
    "images, vgg": (images, lambda x: build_network("vgg", x.shape[1:], 3, width=0.06)),
    "images, resnet-slim": (
        images,
        lambda x: build_network("resnet-slim", x.shape[1:], 3, width=0.1),
    ),
    "images, own": (images, own_network),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_every_method_works_with_it_and_comes_back_from_disk(
    case: str, method: str, tmp_path: Path
) -> None:
    make_points, make_network = CASES[case]
    points = make_points()
    names = ["a", "b", "c"]
    posterior = {"recipe": RECIPE} if METHODS[method].posterior == "spn" else {}
    learner = ActiveLearner(
        Pool(points, names), make_network(points), method, seed=1, training=QUICK,
        posterior=posterior,
    )  # fmt: skip
    learner.tell(np.arange(15), LABELS[:15])
    learner.fit()
    learner.save(tmp_path / "kept")
    batch = learner.ask(6)
    assert len(set(batch)) == 6
    assert not set(batch) & set(range(15))
    again = ActiveLearner.load(tmp_path / "kept", Pool(points, names), network=make_network(points))
    np.testing.assert_array_equal(again.ask(6), batch)


def test_an_acquisition_function_that_would_go_unserved_is_refused_at_once() -> None:
    pool = Pool(images(), ["a", "b", "c"])
    for acquisition, message in (
        ("variance-bald", "has no moments"),
        ("weighted-max-entropy", "has no log_density"),
        ("acs-fw", "has no samples"),
    ):
        with pytest.raises(SpinalError, match=message):
            ActiveLearner(pool, "dense", "deterministic", acquisition)


def test_samples_of_any_posterior_go_into_acs_fw() -> None:
    for method in ("mc-dropout", "ensemble", "spn-cnn"):
        pool = Pool(features(), ["a", "b", "c"])
        learner = ActiveLearner(pool, "dense", method, "acs-fw", training=QUICK)
        learner.tell(np.arange(15), LABELS[:15])
        learner.fit()
        assert len(set(learner.ask(6))) == 6
        assert learner.posterior.sample(learner.view(features())).shape[1] > 1


def test_all_methods_have_one_name(tmp_path: Path) -> None:
    runs = make_runs([load_protocol("digits")], ["all"], [], [0], tmp_path)
    assert [run.method for run in runs] == list(METHODS)
    assert len({run.folder for run in runs}) == len(METHODS)
