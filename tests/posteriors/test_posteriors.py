"""One contract for every posterior: normalised log-probabilities, repeatable, kept on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from spinal.circuits import FitSettings, Recipe
from spinal.data import as_points
from spinal.errors import SpinalError
from spinal.networks import TrainSettings, build_network, compute_features, predict_logits
from spinal.posteriors import POSTERIORS as NAMED
from spinal.posteriors import (
    SPN,
    Deterministic,
    Ensemble,
    FitContext,
    Logistic,
    MCDropout,
    NeuralLinear,
    Posterior,
    SPNEnsemble,
    View,
    describe_posterior,
    make_posterior,
)

QUICK = Recipe(sums=(4, 4), fit=FitSettings(steps=30))
TRAINING = TrainSettings(min_steps=20, max_steps=20)
POSTERIORS = {
    "deterministic": Deterministic,
    "mc-dropout": lambda: MCDropout(samples=8),
    "neural-linear": lambda: NeuralLinear(draws=8, epochs=30),
    "ensemble": lambda: Ensemble(members=3, training=TRAINING),
    "logistic": Logistic,
    "spn": SPN,
    "spn-ensemble": lambda: SPNEnsemble(members=2, training=TRAINING),
    "trained spn": lambda: SPN(QUICK),
    "spn with masks": lambda: SPN(QUICK, masks=5, dropout=0.4),
}


def make_view(n: int = 40, seed: int = 0) -> tuple[View, torch.Tensor]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    points = as_points(rng.normal(size=(n, 6)) + 2 * y[:, None])
    network = build_network("dense", (6,), 3, seed=0)
    view = View(network, points, np.arange(n), compute_features(network, points))
    return view, torch.as_tensor(y)


def fit(posterior: Posterior) -> Posterior:
    view, y = make_view()
    posterior.fit(view, y, FitContext(3, training=TRAINING))
    return posterior


@pytest.fixture(params=POSTERIORS)
def posterior(request: pytest.FixtureRequest) -> Posterior:
    return fit(POSTERIORS[request.param]())


def answers(posterior: Posterior, view: View) -> list[torch.Tensor]:
    """All that a posterior says of class probabilities: ``[N, C]``, and samples if it has any."""
    said = [posterior.predict(view, seed=3)]
    if "samples" in posterior.provides:
        said.append(posterior.sample(view, seed=3))
    return said


def test_every_posterior_has_a_contract_test() -> None:
    tested = {type(make()) for make in POSTERIORS.values()}
    assert tested == set(NAMED.values())


def test_probabilities_are_normalised(posterior: Posterior) -> None:
    for log_probs in answers(posterior, make_view(seed=1)[0]):
        assert log_probs.shape[0] == 40
        assert log_probs.shape[-1] == 3
        total = log_probs.logsumexp(-1)
        torch.testing.assert_close(total, torch.zeros_like(total), atol=1e-5, rtol=0)


def test_answers_repeat_with_their_seed(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    for first, second in zip(answers(posterior, view), answers(posterior, view), strict=True):
        assert torch.equal(first, second)


def test_samples_are_as_many_as_were_asked_for(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    if "samples" in posterior.provides:
        assert posterior.sample(view, 2).shape == (40, 2, 3)
    else:
        with pytest.raises(SpinalError, match="a single model"):
            posterior.sample(view, 2)


def test_samples_are_one_model_for_all_points(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    part = View(view.network, view.points, view.indices[7:9], view.features[7:9])
    for whole, few in zip(answers(posterior, view), answers(posterior, part), strict=True):
        torch.testing.assert_close(whole[7:9], few)


def test_the_same_seed_learns_the_same(posterior: Posterior) -> None:
    view, _ = make_view()
    expected = answers(posterior, view)
    torch.manual_seed(99)  # which nothing may depend on
    fit(posterior)
    for first, second in zip(expected, answers(posterior, view), strict=True):
        assert torch.equal(first, second)


def test_it_tells_what_it_provides_and_no_more(posterior: Posterior) -> None:
    view, _ = make_view(seed=1)
    if "log_density" in posterior.provides:
        assert posterior.log_density(view).shape == (40,)
    else:
        with pytest.raises(SpinalError, match="no density"):
            posterior.log_density(view)
    if "moments" in posterior.provides:
        mean, variance = posterior.moments(view).unbind(1)
        torch.testing.assert_close(mean.sum(1), torch.ones(40), atol=1e-4, rtol=0)
        assert (variance >= 0).all()
    else:
        with pytest.raises(SpinalError, match="no moments"):
            posterior.moments(view)


def test_it_comes_back_from_disk_with_its_settings(posterior: Posterior, tmp_path: Path) -> None:
    view, _ = make_view(seed=1)
    posterior.save(tmp_path)
    described = describe_posterior(posterior)
    assert described is not None
    again = make_posterior(described[0], **json.loads(json.dumps(described[1])))
    again.load(tmp_path)
    assert describe_posterior(again) == described
    for first, second in zip(answers(posterior, view), answers(again, view), strict=True):
        assert torch.equal(first, second)


def test_deterministic_is_the_softmax_of_the_head() -> None:
    view, _ = make_view()
    expected = predict_logits(view.network, view.features).log_softmax(1)
    torch.testing.assert_close(Deterministic().predict(view), expected)


def test_the_spn_predicts_by_its_circuit_and_samples_by_masks() -> None:
    view, _ = make_view()
    spn = SPN(QUICK, masks=20, dropout=0.5)
    fit(spn)
    assert spn.circuit is not None
    torch.testing.assert_close(spn.predict(view), spn.circuit.log_posterior(view.features))
    torch.testing.assert_close(spn.log_density(view), spn.circuit.log_prob(view.features))
    assert spn.sample(view).std(1).max() > 0.01


def test_in_closed_form_the_spn_draws_class_means_unless_features_are_to_be_dropped() -> None:
    view, _ = make_view()
    means, dropped = SPN(masks=5), SPN(masks=5, dropout=0.3)
    for spn in (means, dropped):
        fit(spn)
        assert spn.sample(view, seed=3).shape == (len(view), 5, 3)
    without = dropped.sample(view, seed=3)
    assert not torch.equal(means.sample(view, seed=3), without)
    assert torch.equal(means.sample_without_features(view, seed=3), without)
    assert torch.equal(dropped.sample_without_features(view, seed=3), without)


def image_view(n: int = 60) -> tuple[View, torch.Tensor]:
    """Images of three classes, by how bright they are, in a small LeNet."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    images = rng.integers(0, 80, (n, 8, 8, 1)) + 60 * y[:, None, None, None]
    points = as_points(images.astype(np.uint8))
    network = build_network("lenet", (8, 8, 1), 3, width=0.2)
    return View(network, points, np.arange(n), compute_features(network, points)), torch.tensor(y)


def test_the_spn_says_who_answers_beside_it() -> None:
    vectors, whole = SPN(), SPN()
    fit(vectors)
    assert set(vectors.shares) == {"spn", "logistic", "trees"}
    assert "shares={'spn': " in repr(vectors)
    view, y = image_view()
    whole.fit(view, y, FitContext(3, training=TRAINING))
    assert set(whole.shares) == {"spn", "logistic", "network"}
    assert sum(whole.shares.values()) == pytest.approx(1)
    torch.testing.assert_close(whole.predict(view).exp().sum(1), torch.ones(60))


def test_the_spn_alone_is_its_circuit() -> None:
    spn = SPN()
    fit(spn)
    view, _ = make_view(seed=1)
    assert spn.blend is not None
    variables = spn.blend.gaussian.variables(torch.as_tensor(view.points[view.indices]))
    expected = spn.blend.gaussian.circuit.log_posterior(variables).float()
    torch.testing.assert_close(spn.predict_part(view, "spn"), expected)


def test_a_given_prior_is_predicted_under() -> None:
    view, y = make_view()
    few = torch.arange(40) % 3 != 2
    part = View(view.network, view.points, view.indices[few.numpy()], view.features[few])
    means = []
    for prior in ("labels", "uniform", (1.0, 1.0, 98.0)):
        spn = SPN(prior=prior)
        spn.fit(part, y[few], FitContext(3, training=TRAINING))
        means.append(float(spn.predict(view).exp().mean(0)[2]))
    assert 0 < means[0] < means[1] < means[2]


def log_odds(spn: SPN, view: View) -> torch.Tensor:
    log_probs = spn.predict_part(view, "spn").double()
    return log_probs[:, 1:] - log_probs[:, :1]


def test_class_weights_multiply_the_odds() -> None:
    """As weights of points do in logistic regression: without features, its odds are w n."""
    view, y = make_view()
    weights = (1.0, 4.0, 0.5)
    plain, weighted = SPN(prior=(0.2, 0.3, 0.5)), SPN(prior=(0.2, 0.3, 0.5), class_weight=weights)
    for spn in (plain, weighted):
        spn.fit(view, y, FitContext(3, training=TRAINING))
    counts = np.array([20, 30, 50])
    peer = LogisticRegression(C=1e6, class_weight=dict(enumerate(weights)), tol=1e-10)
    peer.fit(np.zeros((100, 1)), np.repeat(range(3), counts))
    of_weights = np.diff(peer.intercept_) - np.diff(np.log(counts))
    shift = (log_odds(weighted, view) - log_odds(plain, view)).numpy()
    np.testing.assert_allclose(shift, np.cumsum(of_weights)[None].repeat(len(y), 0), atol=1e-4)


def test_balanced_classes_are_equally_frequent() -> None:
    view, y = make_view()
    few = torch.arange(len(y)) % 3 != 2
    part = View(view.network, view.points, view.indices[few.numpy()], view.features[few])
    balanced, uniform = SPN(class_weight="balanced"), SPN(prior="uniform")
    for spn in (balanced, uniform):
        spn.fit(part, y[few], FitContext(3, training=TRAINING))
    torch.testing.assert_close(balanced.predict(view), uniform.predict(view))


@pytest.mark.parametrize("weight", ["x", (1.0, 0.0, 1.0), ()])
def test_class_weights_that_are_none_are_refused(weight: object) -> None:
    with pytest.raises(SpinalError, match="class_weight"):
        SPN(class_weight=weight)  # type: ignore[arg-type]


def test_class_weights_of_other_classes_are_refused() -> None:
    with pytest.raises(SpinalError, match="2 numbers for 3 classes"):
        fit(SPN(class_weight=(1.0, 2.0)))


@pytest.mark.parametrize("wrong", [{"masks": 0}, {"dropout": 2.0}, {"dropout": -1.0}])
def test_settings_of_samples_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SpinalError, match=next(iter(wrong))):
        SPN(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("prior", ["x", (0.5, -0.5), ()])
def test_a_prior_that_is_none_is_refused(prior: object) -> None:
    with pytest.raises(SpinalError, match="prior"):
        SPN(prior=prior)  # type: ignore[arg-type]


def test_labels_of_one_class_and_a_single_label_are_enough() -> None:
    view, _ = image_view()
    for n in (1, 4):
        part = View(view.network, view.points, view.indices[:n], view.features[:n])
        spn = SPN()
        spn.fit(part, torch.zeros(n, dtype=torch.long), FitContext(3, training=TRAINING))
        assert spn.predict(view).isfinite().all()
        assert spn.log_density(view).isfinite().all()


def test_mc_dropout_converges_to_the_mean_network() -> None:
    view, _ = make_view()
    spread = MCDropout(samples=30).sample(view, seed=2)
    assert spread.std(1).max() > 0.01
    few, many = (MCDropout(samples=k).predict(view, seed=0).exp() for k in (10, 400))
    truth = MCDropout(samples=2000).predict(view, seed=1).exp()
    assert (many - truth).abs().mean() < (few - truth).abs().mean() / 2


@pytest.mark.parametrize("name", ["lenet", "dense"])
def test_mc_dropout_without_dropout_is_deterministic(name: str) -> None:
    points = as_points(np.random.default_rng(0).integers(0, 256, (300, 8, 8, 1), np.uint8))
    network = build_network(name, (8, 8, 1), 3, width=0.2, dropout=0.0)
    still = View(network, points, np.arange(300), compute_features(network, points))
    expected = Deterministic().predict(still).unsqueeze(1).expand(-1, 3, -1)
    assert torch.equal(MCDropout(samples=3).sample(still), expected)
    network.head[0] = torch.nn.Identity()
    if name == "dense":  # its only dropout layer
        with pytest.raises(SpinalError, match="no dropout layer"):
            MCDropout(samples=3).sample(still)
