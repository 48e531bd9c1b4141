"""Deep ensembles: members are networks trained as the learner's, from seeds of their own."""

from __future__ import annotations

import copy

import pytest
import torch

from spinal.errors import SpinalError
from spinal.networks import TrainSettings, compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.posteriors import Ensemble, FitContext, View
from tests.posteriors.test_posteriors import make_view

TRAINING = TrainSettings(min_steps=25, max_steps=25)


def fitted(**options) -> tuple[Ensemble, View, torch.Tensor]:
    view, y = make_view()
    ensemble = Ensemble(**{"members": 3, "training": TRAINING, **options})
    ensemble.fit(view, y, FitContext(3, seed=4))
    return ensemble, view, y


def test_members_are_the_network_and_others_trained_alike() -> None:
    ensemble, view, y = fitted()
    samples = ensemble.sample(view)
    assert samples.shape == (40, 3, 3)
    expected = [predict_logits(view.network, view.features).log_softmax(1)]
    for number in range(2):
        member = copy.deepcopy(view.network)
        train(member, view.points[view.indices], y, TRAINING, seed=derived_seed(4, number))
        features = compute_features(member, view.points, view.indices)
        expected.append(predict_logits(member, features).log_softmax(1))
    torch.testing.assert_close(samples, torch.stack(expected, 1))
    assert samples.std(1).max() > 0.05


def test_the_network_is_left_as_it_was() -> None:
    view, y = make_view()
    before = copy.deepcopy(view.network.state_dict())
    Ensemble(members=2, training=TRAINING).fit(view, y, FitContext(3))
    for name, value in view.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_members_go_on_from_where_they_were_if_the_network_does() -> None:
    def first_loss_of_second_fit(retrain) -> float:
        view, y = make_view()
        ensemble, losses = Ensemble(members=2), []
        context = FitContext(
            3,
            training=TrainSettings(min_steps=60, max_steps=60),
            retrain=retrain,
            on_step=lambda i, n, loss: losses.append(loss),
        )
        for _ in range(2):
            ensemble.fit(view, y, context)
        return losses[60]

    assert first_loss_of_second_fit("continue") < 0.7 * first_loss_of_second_fit("scratch")


def test_steps_are_counted_over_all_members() -> None:
    view, y = make_view()
    seen = []
    ensemble = Ensemble(members=3, training=TRAINING)
    context = FitContext(3, on_step=lambda i, n, _: seen.append((i, n)))
    ensemble.fit(view, y, context)
    assert seen == [(i, 50) for i in range(1, 51)]


def test_one_member_is_no_ensemble() -> None:
    with pytest.raises(SpinalError, match="two members"):
        Ensemble(members=1)
