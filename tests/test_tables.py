"""Tables with categories, as numbers and in the classifier."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from spinal import SPNClassifier
from spinal.tables import TableEncoder, has_categories


def table(n: int = 80) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    columns = {
        "size": rng.normal(size=n) + y,
        "colour": np.where(y, "red", np.where(rng.random(n) < 0.5, "blue", "green")),
        "old": rng.random(n) < 0.5,
        "kind": pd.Categorical.from_codes(rng.integers(0, 3, n), ["a", "b", "c"]),
    }
    return pd.DataFrame(columns), y


def test_categories_have_codes_and_missing_ones_are_unknown() -> None:
    x = pd.DataFrame({"n": [1.5, np.nan], "c": ["b", "a"], "b": [True, False]})
    encoder = TableEncoder(x)
    assert encoder.sizes == [0, 2, 2]
    np.testing.assert_array_equal(encoder(x), [[1.5, 1, 1], [np.nan, 0, 0]])
    pd.testing.assert_frame_equal(encoder.decode(encoder(x)), x)
    later = pd.DataFrame({"n": [2, 3], "c": [None, "never seen"], "b": [True, True]})
    np.testing.assert_array_equal(encoder(later), [[2, np.nan, 1], [3, np.nan, 1]])
    assert encoder.decode(encoder(later))["c"].isna().all()
    unknown = [np.nan, np.nan]
    np.testing.assert_array_equal(encoder.one_hot(x), [[1.5, 0, 1, 0, 1], [np.nan, 1, 0, 1, 0]])
    np.testing.assert_array_equal(
        encoder.one_hot(later), [[2, *unknown, 0, 1], [3, *unknown, 0, 1]]
    )


def test_only_what_is_no_number_is_a_category() -> None:
    x, _ = table()
    assert has_categories(x)
    assert not has_categories(x[["size"]])
    assert not has_categories(x[["size"]].to_numpy())


def test_the_classifier_takes_a_table_as_it_comes() -> None:
    x, y = table()
    x.loc[3:9, "colour"] = None
    x.loc[5:20, "size"] = np.nan
    spn = SPNClassifier(steps=60, random_state=0).fit(x, np.array(["no", "yes"])[y])
    assert spn.n_features_in_ == 4
    assert list(spn.feature_names_in_) == list(x.columns)
    probs = spn.predict_proba(x)
    np.testing.assert_allclose(probs.sum(1), 1)
    assert spn.score(x, np.array(["no", "yes"])[y]) > 0.85
    unknown = pd.DataFrame({"size": [np.nan], "colour": [None], "old": [None], "kind": [None]})
    prior = np.bincount(y) / len(y)
    np.testing.assert_allclose(spn.predict_proba(unknown)[0], prior, atol=0.1)
    with pytest.raises(ValueError, match="feature"):
        spn.predict(x[["size", "colour"]])


def test_samples_of_a_table_are_a_table() -> None:
    x, y = table(200)
    spn = SPNClassifier(steps=60, random_state=0).fit(x, y)
    drawn, labels = spn.sample(2000, random_state=0)
    assert list(drawn.columns) == list(x.columns)
    assert set(drawn["kind"]) == {"a", "b", "c"}
    assert drawn["old"].dtype == bool
    red = (drawn["colour"] == "red").to_numpy()
    assert red[labels == 1].mean() > 0.8
    assert red[labels == 0].mean() < 0.2
    np.testing.assert_allclose(spn.predict_proba(drawn).sum(1), 1)


def test_probabilities_of_categories_add_up() -> None:
    """Over all values of all categories, given the number."""
    x, y = table()
    spn = SPNClassifier(steps=20, random_state=0).fit(x, y)
    worlds = itertools.product(["red", "blue", "green"], [True, False], ["a", "b", "c"])
    every = pd.DataFrame(worlds, columns=["colour", "old", "kind"]).assign(size=0.3)[list(x)]
    alone = every.iloc[:1].assign(colour=None, old=None, kind=None)
    total = np.logaddexp.reduce(spn.score_samples(every))
    np.testing.assert_allclose(total, spn.score_samples(alone)[0])


def test_a_column_without_values_changes_nothing() -> None:
    x, y = table()
    empty = x.assign(colour=None)
    spn = SPNClassifier(steps=20, random_state=0).fit(empty, y)
    np.testing.assert_allclose(spn.predict_proba(empty).sum(1), 1)
    assert spn.sample(3)[0]["colour"].isna().all()
