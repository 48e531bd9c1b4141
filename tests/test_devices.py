"""Shapes on a second device: ``meta``, which exists everywhere, and accelerators if present."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spinal import ActiveLearner, Pool, load_dataset
from spinal.acquisition import scores
from spinal.circuits import DGCSPN, Circuit, RandomSPN
from spinal.networks import TrainSettings, build_network
from spinal.networks.network import choose_device

ACCELERATORS = [
    *(["cuda"] if torch.cuda.is_available() else []),
    *(["mps"] if torch.backends.mps.is_available() else []),
]


@pytest.mark.parametrize("device", ["meta", *ACCELERATORS])
@pytest.mark.parametrize(
    "make", [lambda: DGCSPN((4, 4), 3), lambda: RandomSPN(16, 3)], ids=["dgc", "random"]
)
def test_circuits(make, device: str) -> None:
    circuit: Circuit = make().to(device)
    z = torch.zeros(5, 16, device=device)
    for value, shape in (
        (circuit(z), (5, 3)),
        (circuit.log_prob(z), (5,)),
        (circuit.log_posterior(z), (5, 3)),
        (circuit.log_posterior(z, masks=4), (5, 4, 3)),
    ):
        assert value.device.type == device
        assert tuple(value.shape) == shape


@pytest.mark.parametrize("device", ["meta", *ACCELERATORS])
@pytest.mark.parametrize(
    ("name", "shape"), [("lenet", (28, 28, 1)), ("vgg", (32, 32, 3)), ("dense", (7,))]
)
def test_networks(name: str, shape: tuple[int, ...], device: str) -> None:
    network = build_network(name, shape, 3).to(device)
    x = torch.zeros(2, *shape[-1:], *shape[:-1], device=device)  # channels first
    z = network.features(x)
    assert z.device.type == device
    assert z.shape[0] == 2
    assert tuple(network.head(z).shape) == (2, 3)


@pytest.mark.parametrize("device", ["meta", *ACCELERATORS])
@pytest.mark.parametrize("name", ["max_entropy", "margin", "variation_ratio", "bald"])
def test_scores(name: str, device: str) -> None:
    log_probs_N_K_C = torch.zeros(6, 4, 3, device=device)
    scores_N = getattr(scores, name)(log_probs_N_K_C)
    assert scores_N.device.type == device
    assert tuple(scores_N.shape) == (6,)


def test_a_second_device_does_not_mix_with_the_cpu() -> None:
    """What the tests above rely on: an operand that was left on the CPU is an error."""
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(5, device="meta") + torch.zeros(5)


@pytest.mark.skipif(not ACCELERATORS, reason="there is no accelerator")
@pytest.mark.parametrize("method", ["spn-cnn", "mc-dropout", "badge", "bayesian-batch", "logistic"])
def test_a_learner_on_an_accelerator(method: str) -> None:
    digits = load_dataset("digits")
    pool = Pool(digits.train_images[:200], digits.classes)
    training = TrainSettings(min_steps=20, max_steps=20)
    learner = ActiveLearner(pool, "lenet", method, device=ACCELERATORS[0], training=training)
    batch = learner.ask(40)
    learner.tell(batch, digits.train_labels[batch])
    learner.fit()
    assert len(set(learner.ask(10)) - set(batch)) == 10
    probabilities = learner.predict_proba(digits.test_images[:50])
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-4)
    assert learner.assess(digits.test_images[:50]).margin.shape == (50,)


def test_auto_is_an_accelerator_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device().type == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device().type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device().type == "cuda"
