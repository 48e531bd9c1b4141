"""The scikit-learn face: its contract, missing values, densities, samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from spinal import SpinalError, SPNClassifier


@parametrize_with_checks([SPNClassifier(steps=100, sums=(8, 8), leaves=8)])
def test_scikit_learn_contract(estimator, check) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, ...]:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=600, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def fitted(digits: tuple[np.ndarray, ...]) -> SPNClassifier:
    return SPNClassifier(random_state=0, dtype="float32").fit(digits[0], digits[2])


def test_it_classifies_about_as_well_as_logistic_regression(fitted, digits) -> None:
    X, held, y, truth = digits
    peer = LogisticRegression(max_iter=1000).fit(X / 16, y)
    assert fitted.score(held, truth) > peer.score(held / 16, truth) - 0.005


def test_missing_features_are_integrated_out(fitted, digits) -> None:
    """Better than filling in the mean, by far when half of the features are gone."""
    X, held, _, truth = digits
    rng = np.random.default_rng(0)
    gone = rng.random(held.shape) < 0.5
    imputed = np.where(gone, X.mean(0), held)
    missing = np.where(gone, np.nan, held)
    assert fitted.score(missing, truth) > fitted.score(imputed, truth) + 0.05


def test_density_tells_digits_from_noise(fitted, digits) -> None:
    held = digits[1]
    rng = np.random.default_rng(0)
    noise = rng.permuted(held, axis=0)  # each pixel from another digit
    usual, unusual = fitted.score_samples(held), fitted.score_samples(noise)
    truth = np.r_[np.ones(len(usual)), np.zeros(len(unusual))]
    assert roc_auc_score(truth, np.r_[usual, unusual]) > 0.85


def test_density_is_in_the_units_of_the_data() -> None:
    X, y = load_iris(return_X_y=True)
    arguments = {"steps": 20, "sums": (4, 4), "random_state": 0}
    small = SPNClassifier(**arguments).fit(X, y).score_samples(X)
    large = SPNClassifier(**arguments).fit(1000 * X, y).score_samples(1000 * X)
    np.testing.assert_allclose(large, small - 4 * np.log(1000), rtol=1e-6)


def test_samples_look_like_their_class(fitted) -> None:
    X, y = fitted.sample(200, random_state=1)
    assert X.shape == (200, 64)
    assert (fitted.predict(X) == y).mean() > 0.9
    again, _ = fitted.sample(200, random_state=1)
    np.testing.assert_array_equal(X, again)


def test_labels_may_be_strings_in_a_pipeline_and_a_grid_search() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = make_pipeline(
        FunctionTransformer(), SPNClassifier(steps=40, sums=(4, 4), random_state=0)
    )
    search = GridSearchCV(model, {"spnclassifier__scale": [1.0, 3.0]}, cv=2).fit(X, names)
    assert search.best_score_ > 0.85
    assert set(search.predict(X)) == {"setosa", "versicolor", "virginica"}


def test_the_same_random_state_gives_the_same_model() -> None:
    X, y = load_iris(return_X_y=True)
    arguments = {"steps": 10, "sums": (4, 4)}
    first, same, other = (
        SPNClassifier(**arguments, random_state=s).fit(X, y).predict_proba(X) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_em_and_random_structures_are_a_parameter_away() -> None:
    X, y = load_iris(return_X_y=True)
    model = SPNClassifier(
        "random", optimiser="em", generative=1.0, learning_rate=0.5, steps=20, scale=0.5,
        random_state=0,
    )  # fmt: skip
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("weights", [{0: 1, 1: 3, 2: 2}, "balanced"])
def test_a_class_weight_is_a_number_of_repetitions(weights: dict[int, int] | str) -> None:
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:30, 50:60, 100:115]  # 30, 10 and 15 points
    repeats = np.array([1, 3, 2])[y[few]]
    arguments = {"steps": 20, "sums": (4, 4), "random_state": 0, "batch_size": None}
    model = SPNClassifier(class_weight=weights, **arguments).fit(X[few], y[few])
    repeated = SPNClassifier(**arguments).fit(X[few].repeat(repeats, 0), y[few].repeat(repeats))
    np.testing.assert_allclose(model.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"structure": "tree"}, "tree"),
        ({"class_weight": "x"}, "balanced"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
        ({"units": "x"}, "units is one of common, each"),
        ({"start": "x"}, "start is one of"),
        ({"leaf_dropout": -1}, "leaf_dropout must be from 0 to below 1"),
        ({"leaves": 0}, "leaves, sums and repetitions must be 1 or more"),
        ({"sums": ()}, "sums"),
        ({"scale": float("nan")}, "scale above 0"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"dtype": "int8"}, "float64"),
        ({"generative": 3}, "0 to 1"),
    ],
)
def test_wrong_settings_are_refused(arguments: dict, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises((ValueError, SpinalError), match=message):
        SPNClassifier(**arguments).fit(X, y)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features_that_are_too_large_are_refused(dtype: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = SPNClassifier(steps=10, sums=(4, 4), random_state=0, dtype=dtype)
    with pytest.raises(SpinalError, match="features"):
        model.fit(1e200 * X, y)
    model.fit(X, y)
    with pytest.raises(SpinalError, match="features"):
        model.score_samples(1e200 * X)
