"""Logistic regression against scikit-learn's."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from spinal.classifiers import fit_logistic, held_out_labels, held_out_loss, held_out_parts
from spinal.classifiers.logistic import logistic_path
from tests.classifiers.data import clouds


@pytest.mark.parametrize(("n", "d", "classes"), [(90, 6, 3), (40, 60, 4), (80, 5, 2)])
def test_the_path_is_that_of_scikit_learn(n: int, d: int, classes: int) -> None:
    x, y = clouds(n, d, classes)
    penalties = (10.0, 1.0, 0.1)
    for penalty, (weight, bias) in zip(
        penalties, logistic_path(x, y, classes, penalties), strict=True
    ):
        # For two classes it has one vector of weights, the difference of our two: half the penalty.
        strength = (2 if classes == 2 else 1) / penalty
        other = LogisticRegression(C=strength, tol=1e-8, max_iter=5000).fit(x.numpy(), y.numpy())
        expected = torch.from_numpy(other.predict_proba(x.numpy()))
        torch.testing.assert_close((x @ weight + bias).softmax(1), expected, atol=3e-3, rtol=0)


def test_a_class_without_labels_keeps_its_share() -> None:
    x, y = clouds(60, 4, 3)
    parts = held_out_parts(x, y, 5, 0)
    model, held = fit_logistic(x, y, 5, parts)
    probs = model.log_probs(x).exp()
    torch.testing.assert_close(probs.sum(1), torch.ones(60).double())
    torch.testing.assert_close(probs[:, 3:], torch.full((60, 2), 1 / 65).double())
    torch.testing.assert_close(held.exp().sum(1), torch.ones(60).double())


def test_one_class_alone_is_predicted() -> None:
    x, _ = clouds(8, 4, 3)
    y = torch.ones(8, dtype=torch.long)
    model, _ = fit_logistic(x, y, 2, held_out_parts(x, y, 5, 0))
    assert (model.log_probs(x).argmax(1) == 1).all()


def test_what_is_held_out_was_not_seen() -> None:
    x, y = clouds(100, 30, 2, apart=0.0)  # nothing to learn, and enough features to learn it by
    parts = held_out_parts(x, y, 5, 0)
    model, held = fit_logistic(x, y, 2, parts)
    assert float(held_out_loss(held, held_out_labels(y, parts))) > 0.65
    assert (model.log_probs(x).exp() - 0.5).abs().max() < 0.3
