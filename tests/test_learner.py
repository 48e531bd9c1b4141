"""The active learner: what it may ask, what it may be told, and that it comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spinal import ActiveLearner, Pool, load_dataset
from spinal.acquisition import Candidates
from spinal.acquisition.batchbald import BatchBALD
from spinal.acquisition.ranking import Ranked
from spinal.acquisition.scores import max_entropy
from spinal.circuits import FitSettings, Recipe
from spinal.errors import FileFormatError, LabelError, SpinalError
from spinal.learner import NotFittedError, PoolDryError
from spinal.methods import METHODS
from spinal.networks import Network, NetworkError, TrainSettings
from spinal.posteriors import SPN, Ensemble, MCDropout, describe_posterior

DIGITS = load_dataset("digits")
QUICK = TrainSettings(min_steps=30, max_steps=30)
POINTS = 120


def make(pool: Pool | None = None, **options) -> ActiveLearner:
    pool = pool or Pool(DIGITS.train_images[:POINTS], DIGITS.classes)
    return ActiveLearner(
        pool, **{"training": QUICK, "network": ("lenet", {"width": 0.25}), **options}
    )


def answer(learner: ActiveLearner, indices: np.ndarray) -> None:
    learner.tell(indices, DIGITS.train_labels[indices])


@pytest.fixture(scope="module")
def fitted() -> ActiveLearner:
    learner = make()
    answer(learner, learner.ask(30))
    learner.fit()
    return learner


def test_drop_query_gets_samples_without_features(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make(acquisition="drop-query")
    answer(learner, learner.ask(20))
    learner.fit()
    monkeypatch.setattr(SPN, "sample", None)  # the draws of class means
    assert len(learner.ask(5)) == 5


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_round(method: str) -> None:
    learner = make(method=method)
    answer(learner, learner.ask(20))
    for _ in range(2):
        learner.fit()
        answer(learner, learner.ask(5))
    assert len(learner.pool.labelled_indices) == 30
    for by in ("method", "network"):
        probs = learner.predict_proba(DIGITS.test_images[:7], by=by)
        assert probs.shape == (7, 10)
        np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-5)


def test_the_dropout_rate_of_training_is_that_of_the_samples(tmp_path: Path) -> None:
    training = replace(QUICK, dropout=0.0)
    learner = make(method="mc-dropout", training=training, posterior={"samples": 4})
    answer(learner, learner.ask(20))
    learner.fit()
    points = DIGITS.test_images[:9]
    probs = learner.predict_proba(points)
    np.testing.assert_allclose(probs, learner.predict_proba(points, by="network"), rtol=1e-5)
    learner.save(tmp_path / "saved")
    pool = Pool(DIGITS.train_images[:POINTS], DIGITS.classes)
    again = ActiveLearner.load(tmp_path / "saved", pool)
    assert again.posterior == MCDropout(samples=4)
    np.testing.assert_array_equal(again.predict_proba(points), probs)


def test_it_learns() -> None:
    learner = ActiveLearner(Pool(DIGITS.train_images, DIGITS.classes), seed=0)
    answer(learner, learner.ask(100))
    learner.fit()
    right = learner.predict(DIGITS.test_images) == DIGITS.test_labels
    assert right.mean() > 0.85


def test_what_is_asked_or_labelled_is_not_asked_again(fitted: ActiveLearner) -> None:
    learner = make(fitted.pool)
    before = set(learner.pool.labelled_indices) | set(learner.pool.asked_indices)
    first, second = learner.ask(10), learner.ask(10)
    assert len({*first, *second}) == 20
    assert not {*first, *second} & before
    learner.pool.release([*first, *second])


def test_the_most_uncertain_are_asked(fitted: ActiveLearner) -> None:
    left = fitted.pool.unlabelled_indices
    batch = fitted.ask(5)
    fitted.pool.release(batch)
    probs = np.sort(fitted.predict_proba(DIGITS.train_images[left]).astype(np.float64), axis=1)
    np.testing.assert_array_equal(batch, left[np.argsort(probs[:, -1] - probs[:, -2])[:5]])
    assert fitted.choice is not None
    below = fitted.choice.uncertainty[:, None] < fitted.choice.uncertainty[fitted.choice.chosen]
    rank = below.sum(0).mean() / (len(left) - 1)
    assert fitted.choice.summary()["entropy_rank"] == pytest.approx(rank)


@pytest.mark.parametrize(
    "acquisition", [("batchbald", {"labellings": 50}), {"labellings": 50}, BatchBALD(labellings=50)]
)
def test_a_part_is_a_name_with_settings_settings_or_an_object(acquisition) -> None:
    assert make(method="spn-batchbald", acquisition=acquisition).acquisition == BatchBALD(50)


def test_a_wrong_part_is_refused_with_what_may_have_been_meant() -> None:
    for options, message in (
        ({"posterior": {"mask": 3}}, "did you mean 'masks'"),
        ({"posterior": ("spm", {})}, "did you mean 'spn'"),
        ({"posterior": {"masks": "many"}}, "not of type int"),
        ({"posterior": {"masks": 0}}, "masks must be 1 or more"),
        ({"acquisition": ("margin", {"sharpnes": 3.0})}, "did you mean 'sharpness'"),
        ({"acquisition": 3}, "not a name"),
        ({"network": ("lenet", {"widht": 1})}, "widht"),
        ({"retrain": "x"}, "'scratch' or 'continue'"),
        ({"candidates": -1}, "1 or more"),
    ):
        with pytest.raises(SpinalError, match=message):
            make(**options)


def test_any_function_of_candidates_chooses(tmp_path: Path) -> None:
    def lowest_first_feature(candidates: Candidates) -> torch.Tensor:
        assert candidates.features is not None
        return -candidates.features[:, 0]

    learner = make(method="random", acquisition=lowest_first_feature)
    answer(learner, np.arange(20))
    learner.fit()
    left = learner.pool.unlabelled_indices
    values = learner.view(DIGITS.train_images[left]).features[:, 0].numpy()
    assert set(values[np.isin(left, learner.ask(3))]) <= set(np.sort(values)[:3])
    learner.save(tmp_path / "saved")
    pool = Pool(DIGITS.train_images[:POINTS], DIGITS.classes)
    with pytest.raises(SpinalError, match="give it again, as `acquisition=`"):
        ActiveLearner.load(tmp_path / "saved", pool)
    ActiveLearner.load(tmp_path / "saved", pool, acquisition=lowest_first_feature).ask(3)


def test_wrong_scores_of_a_function_are_refused() -> None:
    for scores, message in ((torch.zeros(3), "one number for each"), (None, "NaN")):
        learner = make(
            method="random",
            acquisition=lambda c, s=scores: torch.full((len(c),), torch.nan) if s is None else s,
        )
        answer(learner, np.arange(20))
        learner.fit()
        with pytest.raises(SpinalError, match=message):
            learner.ask(3)


@pytest.mark.parametrize(
    ("method", "posterior", "acquisition"),
    [
        ("spn-cnn", {"masks": 7, "recipe": Recipe(leaves=3)}, ("max-entropy", {"sharpness": 30.0})),
        (
            "spn-cnn",
            SPN(Recipe(sums=(4, 4), fit=FitSettings(steps=7, batch_size=None)), (8, 4), 3, 0.2),
            Ranked(max_entropy, power=2.0),
        ),
        ("mc-dropout", {"samples": 4}, ("power-bald", {"power": 3.0})),
        ("ensemble", Ensemble(2, replace(QUICK, learning_rate=0.01)), None),
        ("bayesian-batch", {"draws": 9, "epochs": 3}, None),
    ],
)
def test_all_settings_are_saved(method, posterior, acquisition, tmp_path: Path) -> None:
    learner = make(
        method=method, posterior=posterior, acquisition=acquisition, candidates=50,
        retrain="continue", network=("lenet", {"width": 0.25, "dropout": 0.2}), seed=3,
    )  # fmt: skip
    answer(learner, np.arange(20))
    learner.fit()
    learner.save(tmp_path / "saved")
    pool = Pool(DIGITS.train_images[:POINTS], DIGITS.classes)
    again = ActiveLearner.load(tmp_path / "saved", pool)
    assert again.settings == learner.settings
    assert again.acquisition == learner.acquisition
    assert describe_posterior(again.posterior) == describe_posterior(learner.posterior)
    assert again.network.config == learner.network.config


def test_a_bare_module_is_wrapped_or_refused_with_the_line_to_write() -> None:
    layers = [torch.nn.Flatten(), torch.nn.Linear(64, 20), torch.nn.ReLU(), torch.nn.Dropout(0.3)]
    learner = make(network=torch.nn.Sequential(*layers, torch.nn.Linear(20, 10)))
    answer(learner, np.arange(40))
    learner.fit()
    assert learner.view(DIGITS.test_images[:3]).features.shape == (3, 20)

    class Deciding(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(1)[:, :10] if x.sum() > 0 else -x.flatten(1)[:, :10]

    for module in (Deciding(), torch.nn.Flatten()):
        with pytest.raises(NetworkError, match=r"network=spinal.networks.wrap\(module"):
            make(network=module)


def test_the_share_of_labels_that_it_learnt(fitted: ActiveLearner) -> None:
    images = np.asarray(fitted.pool.points[fitted.pool.labelled_indices])
    right = fitted.predict(images, by="network") == fitted.pool.labels
    assert fitted.fitted_share() == pytest.approx(right.mean())


def test_a_dry_pool_says_so() -> None:
    learner = make(Pool(DIGITS.train_images[:12], DIGITS.classes))
    assert len(learner.ask(100)) == 12
    with pytest.raises(PoolDryError, match=r"0 points are labelled, 12 are asked"):
        learner.ask(1)


def test_wrong_answers_are_refused_and_corrections_taken() -> None:
    learner = make()
    learner.tell([3], [7])
    for indices, labels in (([POINTS], [1]), ([4], [10]), ([3], [6])):
        with pytest.raises(LabelError):
            learner.tell(indices, labels)
    learner.tell([3], [6], correction=True)
    assert learner.pool.labels.tolist() == [6]


def test_the_same_seed_asks_the_same() -> None:
    batches = []
    for seed in (5, 5, 6):
        learner = make(seed=seed)
        answer(learner, np.arange(20))
        learner.fit()
        batches.append(learner.ask(8).tolist())
    assert batches[0] == batches[1]
    assert batches[0] != batches[2]


def test_only_some_candidates_can_be_assessed(fitted: ActiveLearner) -> None:
    learner = make(candidates=15)
    answer(learner, np.arange(20))
    learner.fit()
    assert len(learner.ask(30)) == 30  # never fewer than were asked for
    assert len(set(learner.ask(10))) == 10


@pytest.mark.parametrize("wrong", [{"candidates": -1}, {"candidates": 0}, {"retrain": "x"}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpinalError, match=next(iter(wrong))):
        make(**wrong)


@pytest.mark.parametrize("retrain", ["scratch", "continue"])
def test_a_saved_learner_goes_on_as_if_nothing_had_happened(retrain: str, tmp_path: Path) -> None:
    learner = make(retrain=retrain)
    answer(learner, np.arange(20))
    learner.fit()
    answer(learner, learner.ask(5))
    learner.save(tmp_path / "saved")
    learner.save(tmp_path / "saved")  # over an older one
    assert sorted(p.name for p in tmp_path.iterdir()) == ["saved"]
    again = ActiveLearner.load(
        tmp_path / "saved", Pool(DIGITS.train_images[:POINTS], DIGITS.classes)
    )
    images = DIGITS.test_images[:20]
    np.testing.assert_array_equal(again.predict_proba(images), learner.predict_proba(images))
    learner.fit()
    again.fit()
    np.testing.assert_array_equal(again.ask(5), learner.ask(5))


def test_what_is_no_learner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="holds no learner"):
        ActiveLearner.load(tmp_path, make().pool)
    (tmp_path / "learner.json").write_text("{")
    with pytest.raises(FileFormatError, match="damaged"):
        ActiveLearner.load(tmp_path, make().pool)


def test_a_network_of_ones_own() -> None:
    body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 20), torch.nn.ReLU())
    learner = make(network=Network(body, torch.nn.Linear(20, 10)))
    answer(learner, np.arange(40))
    learner.fit()
    assessed = learner.assess(DIGITS.test_images[:3])
    assert assessed.log_density is not None
    assert len(assessed.log_density) == 3


def test_an_assessment_is_of_the_predictions_in_batches(
    fitted: ActiveLearner, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = DIGITS.test_images[:30]
    monkeypatch.setattr("spinal.learner.predictor._BATCH", 7)
    assessed = fitted.assess(images)
    probs = fitted.predict_proba(images).astype(np.float64)
    np.testing.assert_allclose(assessed.uncertainty, -(probs * np.log(probs)).sum(1), rtol=1e-4)
    best = np.sort(probs, axis=1)
    np.testing.assert_allclose(assessed.margin, best[:, -1] - best[:, -2], atol=1e-5)
    assert assessed.log_density is not None
    np.testing.assert_allclose(
        assessed.log_density, fitted.posterior.log_density(fitted.view(images)), rtol=1e-4
    )


def test_pools_of_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 12)) + 3 * (np.arange(60) % 3)[:, None]
    learner = ActiveLearner(Pool(features, ["a", "b", "c"]), network="dense", training=QUICK)
    learner.tell(np.arange(30), (np.arange(30) % 3))
    learner.fit()
    assert (learner.predict(features[30:]) == np.arange(30, 60) % 3).mean() > 0.9


def test_asked_too_early() -> None:
    learner = make()
    with pytest.raises(NotFittedError, match="no labels"):
        learner.fit()
    with pytest.raises(NotFittedError, match="call fit"):
        learner.predict(DIGITS.test_images[:2])
    with pytest.raises(SpinalError, match="did you mean 'spn-cnn'"):
        make(method="spn-cn")
    with pytest.raises(SpinalError, match="one point or more"):
        learner.ask(0)


def test_log_density_tells_what_is_unlike_the_pool(fitted: ActiveLearner) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 8, 8, 1), dtype=np.uint8)
    usual = fitted.assess(DIGITS.test_images[:50]).log_density
    unusual = fitted.assess(noise).log_density
    assert np.median(unusual) < np.median(usual)


def test_bald_gets_samples_to_compare() -> None:
    learner = make(acquisition="bald")
    answer(learner, np.arange(20))
    learner.fit()
    assert len(learner.ask(5)) == 5
    with pytest.raises(SpinalError, match="has no samples"):
        make(method="deterministic", acquisition="bald")


def test_the_circuit_can_be_asked_alone() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 5)).astype(np.float32)
    y = (points[:, 0] > 0).astype(np.int64)
    for method in ("spn-cnn", "logistic"):
        learner = ActiveLearner(Pool(points, ["no", "yes"]), "dense", method, seed=0)
        learner.tell(np.arange(40), y[:40])
        learner.fit()
        assert (learner.predict(points) == y).mean() > 0.8
        if method == "spn-cnn":
            alone = learner.predict_proba(points, by="spn")
            np.testing.assert_allclose(alone.sum(1), 1, rtol=1e-5)
            assert (alone != learner.predict_proba(points)).any()
        else:
            with pytest.raises(SpinalError, match="no part 'spn'"):
                learner.predict(points, by="spn")


def test_a_posterior_beside_the_learner_is_what_the_method_of_that_name_has() -> None:
    learner, logistic = make(method="deterministic"), make(method="logistic")
    for each in (learner, logistic):
        answer(each, np.arange(30))
        each.fit()
    beside = learner.fit_beside("logistic").predict(learner.view(DIGITS.test_images[:20]))
    expected = logistic.predict_log_proba(DIGITS.test_images[:20])
    np.testing.assert_allclose(beside, expected, rtol=1e-6)
    assert type(learner.posterior).__name__ == "Deterministic"


@pytest.mark.parametrize("acquisition", ["margin", "max-entropy", "bald", "auto", "k-center"])
def test_blocks_change_no_pick(monkeypatch: pytest.MonkeyPatch, acquisition: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    x = (rng.normal(size=(90, 4)) + 2 * np.eye(3, 4)[labels]).astype(np.float32)

    def picks() -> list[int]:
        training = TrainSettings(min_steps=3, max_steps=3)
        pool = Pool(x, 3)
        method = "k-center" if acquisition == "k-center" else "spn-cnn"
        learner = ActiveLearner(pool, "dense", method, acquisition, training=training)
        learner.tell(np.arange(15), labels[:15])
        learner.fit()
        return learner.ask(6).tolist()

    expected = picks()
    monkeypatch.setattr("spinal.learner.candidates.BLOCK", 7)
    assert picks() == expected
