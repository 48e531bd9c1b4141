"""One contract for every posterior: normalised log-probabilities, repeatable, kept on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from spinal.circuits import FitSettings, Recipe
from spinal.data import as_points
from spinal.errors import SpinalError
from spinal.networks import TrainSettings, build_network, compute_features, predict_logits
from spinal.posteriors import (
    SPN,
    Deterministic,
    Ensemble,
    MCDropout,
    NeuralLinear,
    Posterior,
    View,
)

QUICK = Recipe(sums=(4, 4), fit=FitSettings(steps=30))
TRAINING = TrainSettings(min_steps=20, max_steps=20)
POSTERIORS = {
    "deterministic": Deterministic,
    "mc-dropout": lambda: MCDropout(samples=8),
    "neural-linear": lambda: NeuralLinear(samples=8, epochs=30),
    "ensemble": lambda: Ensemble(members=3, training=TRAINING),
    "spn": lambda: SPN(QUICK),
    "spn with masks": lambda: SPN(QUICK, masks=5, dropout=0.4),
}


def make_view(n: int = 40, seed: int = 0) -> tuple[View, torch.Tensor]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    points = as_points(rng.normal(size=(n, 6)) + 2 * y[:, None])
    network = build_network("dense", (6,), 3, seed=0)
    view = View(network, points, np.arange(n), compute_features(network, points))
    return view, torch.as_tensor(y)


@pytest.fixture(params=POSTERIORS)
def posterior(request: pytest.FixtureRequest) -> Posterior:
    made = POSTERIORS[request.param]()
    view, y = make_view()
    made.fit(view, y, 3, seed=0)
    return made


def test_log_probs_are_normalised(posterior: Posterior) -> None:
    log_probs = posterior.log_probs(make_view(seed=1)[0])
    assert log_probs.shape[0] == 40
    assert log_probs.shape[2] == 3
    torch.testing.assert_close(
        log_probs.logsumexp(2), torch.zeros(log_probs.shape[:2]), atol=1e-5, rtol=0
    )


def test_samples_repeat_with_their_seed(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    assert torch.equal(posterior.log_probs(view, seed=3), posterior.log_probs(view, seed=3))
    k = posterior.log_probs(view, samples=False).shape[1]
    expected = getattr(posterior, "samples", getattr(posterior, "members", 1))
    assert k == expected


def test_samples_are_one_model_for_all_points(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    part = View(view.network, view.points, view.indices[7:9], view.features[7:9])
    torch.testing.assert_close(posterior.log_probs(view)[7:9], posterior.log_probs(part))


def test_the_same_seed_learns_the_same(posterior: Posterior) -> None:
    view, y = make_view()
    expected = posterior.log_probs(view, seed=1)
    torch.manual_seed(99)  # which nothing may depend on
    posterior.fit(view, y, 3, seed=0)
    assert torch.equal(posterior.log_probs(view, seed=1), expected)


def test_it_tells_what_it_provides_and_no_more(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    assert (posterior.log_density(view) is not None) == ("log_density" in posterior.provides)
    if "moments" in posterior.provides:
        mean, variance = posterior.moments(view).unbind(1)
        torch.testing.assert_close(mean.sum(1), torch.ones(40), atol=1e-4, rtol=0)
        assert (variance >= 0).all()
    else:
        with pytest.raises(SpinalError, match="no moments"):
            posterior.moments(view)


def test_it_comes_back_from_disk(posterior: Posterior, tmp_path: Path) -> None:
    view, _ = make_view(seed=1)
    expected = posterior.log_probs(view, seed=1)
    posterior.save(tmp_path)
    names = [field.name for field in dataclasses.fields(posterior) if field.init]
    again = type(posterior)(**{name: getattr(posterior, name) for name in names})
    again.load(tmp_path)
    assert torch.equal(again.log_probs(view, seed=1), expected)


def test_deterministic_is_the_softmax_of_the_head() -> None:
    view, _ = make_view()
    expected = predict_logits(view.network, view.features).log_softmax(1)
    torch.testing.assert_close(Deterministic().log_probs(view)[:, 0], expected)


def test_the_spn_has_a_density_and_masks_spread() -> None:
    view, y = make_view()
    spn = SPN(QUICK, masks=20, dropout=0.5)
    spn.fit(view, y, 3, seed=0)
    assert spn.log_density(view).shape == (40,)
    assert spn.log_probs(view).std(1).max() > 0.01
    assert Deterministic().log_density(view) is None


def test_the_spn_is_sharpened_where_points_are_ranked_and_not_where_it_predicts() -> None:
    view, y = make_view()
    spn = SPN(QUICK, sharpness=3.0)
    spn.fit(view, y, 3, seed=0)
    assert spn.circuit is not None
    expected = spn.circuit.log_posterior(view.features)
    torch.testing.assert_close(spn.log_probs(view, samples=False)[:, 0], expected)
    cubed = expected.exp() ** 3
    torch.testing.assert_close(
        spn.log_probs(view)[:, 0].exp(), cubed / cubed.sum(1, keepdim=True), atol=1e-5, rtol=0
    )


def test_mc_dropout_converges_to_the_mean_network() -> None:
    view, _ = make_view()
    spread = MCDropout(samples=30).log_probs(view, seed=2)
    assert spread.std(1).max() > 0.01
    few, many = (MCDropout(samples=k).log_probs(view, seed=0).exp().mean(1) for k in (10, 400))
    truth = MCDropout(samples=2000).log_probs(view, seed=1).exp().mean(1)
    assert (many - truth).abs().mean() < (few - truth).abs().mean() / 2


@pytest.mark.parametrize("name", ["lenet", "dense"])
def test_mc_dropout_without_dropout_is_deterministic(name: str) -> None:
    points = as_points(np.random.default_rng(0).integers(0, 256, (300, 8, 8, 1), np.uint8))
    network = build_network(name, (8, 8, 1), 3, width=0.2, dropout=0.0)
    still = View(network, points, np.arange(300), compute_features(network, points))
    expected = Deterministic().log_probs(still).expand(-1, 3, -1)
    assert torch.equal(MCDropout(samples=3).log_probs(still), expected)
    network.head[0] = torch.nn.Identity()
    if name == "dense":  # its only dropout layer
        with pytest.raises(SpinalError, match="no dropout layer"):
            MCDropout(samples=3).log_probs(still)
