"""Tables with categories, as numbers and in the classifier."""

from __future__ import annotations

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


def test_categories_are_encoded_one_hot_and_missing_ones_as_unknown() -> None:
    x = pd.DataFrame({"n": [1.5, np.nan], "c": ["b", "a"], "b": [True, False]})
    encoder = TableEncoder(x)
    np.testing.assert_array_equal(encoder(x), [[1.5, 0, 1, 0, 1], [np.nan, 1, 0, 1, 0]])
    later = pd.DataFrame({"n": [2, 3], "c": [None, "never seen"], "b": [True, True]})
    np.testing.assert_array_equal(
        encoder(later), [[2, np.nan, np.nan, 0, 1], [3, np.nan, np.nan, 0, 1]]
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
