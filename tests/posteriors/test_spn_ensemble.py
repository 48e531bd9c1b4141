"""SPNs on the members of an ensemble: one mixture, by its formula and by quadrature."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from spinal.classifiers.blend import refit_on_network
from spinal.data import as_points
from spinal.errors import SpinalError
from spinal.networks import TrainSettings, build_network, compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.posteriors import FitContext, SPNEnsemble, View, spn_ensemble
from spinal.posteriors.ensemble import Ensemble
from tests.posteriors.test_posteriors import make_view

TRAINING = TrainSettings(min_steps=20, max_steps=20)
CONTEXT = FitContext(3, seed=4, training=TRAINING)


def fitted(**options) -> tuple[SPNEnsemble, View, torch.Tensor]:
    view, y = make_view()
    ensemble = SPNEnsemble(**{"members": 3, **options})
    ensemble.fit(view, y, CONTEXT)
    return ensemble, view, y


def test_predictions_are_the_mean_of_the_members() -> None:
    """Of networks that are trained here once more, each with a mixture on its own features."""
    ensemble, view, y = fitted()
    first = ensemble._blends[0]
    expected = []
    for number in range(-1, 2):
        member = copy.deepcopy(view.network)
        if number >= 0:
            points = view.points[view.indices]
            train(member, points, y, TRAINING, seed=derived_seed(4, number))
        z = compute_features(member, view.points)
        blend = refit_on_network(z, y, 3, first).with_prior(first.after)
        expected.append(blend.log_probs(z, predict_logits(member, z).log_softmax(1)).exp())
    assert (expected[0] - expected[1]).abs().max() > 0.01
    mean = torch.stack(expected).mean(0).float()
    torch.testing.assert_close(ensemble.predict(view).exp(), mean, rtol=1e-4, atol=1e-6)
    members = torch.stack(expected, 1).float()
    torch.testing.assert_close(ensemble.sample(view).exp(), members, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ensemble.sample(view, 2).exp(), members[:, :2], rtol=1e-4, atol=1e-6)


def test_it_is_the_sum_product_network_of_its_formula() -> None:
    """All terms of the sum over members, multiplied out, for every point and class."""
    ensemble, view, _ = fitted()
    joint = []  # of each member: p(z_m, y)
    for blend, seen in zip(ensemble._blends, ensemble._views(view, 3), strict=True):
        variables = blend.gaussian.variables(seen.features)
        by_class, common = blend.gaussian.circuit.class_values(variables)
        joint.append((by_class + common[:, None]).double().exp().detach())
    terms = torch.zeros(40, 3, dtype=torch.float64)
    for m in range(3):
        others = [p.sum(1) for j, p in enumerate(joint) if j != m]
        terms += joint[m] * torch.stack(others).prod(0)[:, None] / 3
    density = ensemble.log_density(view).double()
    torch.testing.assert_close(density, terms.sum(1).log(), rtol=1e-4, atol=1e-4)
    posterior = ensemble.predict_part(view, "spn").double().exp()
    torch.testing.assert_close(posterior, terms / terms.sum(1, keepdim=True), rtol=1e-4, atol=1e-6)


def test_the_density_integrates_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members with a feature each, on a grid over both features."""
    rng, y = np.random.default_rng(0), torch.arange(40) % 3
    points = as_points(rng.normal(size=(40, 6)) + 2 * y.numpy()[:, None])
    network = build_network("dense", (6,), 3, features=1, seed=1)
    labelled = View(network, points, np.arange(40), compute_features(network, points))
    ensemble = SPNEnsemble(members=2)
    ensemble.fit(labelled, y, CONTEXT)
    steps, axes = 200, []
    for blend in ensemble._blends:
        # Features whose variables go from -30 to 30; the density is over variables.
        at = blend.gaussian.variables(torch.tensor([[0.0], [1.0]]))
        slope = float(at[1, 0] - at[0, 0])
        axes.append((torch.linspace(-30, 30, steps).double() - at[0, 0]) / slope)
    z_1, z_2 = torch.cartesian_prod(*axes).split(1, dim=1)
    monkeypatch.setattr(spn_ensemble, "compute_features", lambda *_: z_2)
    grid = View(network, points, np.arange(len(z_1)), z_1)
    total = ensemble.log_density(grid).exp().sum() * (60 / (steps - 1)) ** 2
    assert float(total) == pytest.approx(1, abs=1e-3)


def test_members_compute_features_of_the_same_points_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, labelled, y = fitted()
    rows = np.arange(5)
    few = View(labelled.network, labelled.points, rows, labelled.features[rows])
    calls = []

    def counted(network, points, indices):
        calls.append(len(indices))
        return compute_features(network, points, indices)

    monkeypatch.setattr(spn_ensemble, "compute_features", counted)
    density = ensemble.log_density(few)
    ensemble.sample(few, 2)
    predicted = ensemble.predict(few)
    assert calls == [5, 5]
    torch.testing.assert_close(predicted, ensemble.predict(labelled)[:5])
    torch.testing.assert_close(density, ensemble.log_density(labelled)[:5])
    again, context = SPNEnsemble(members=3), FitContext(3, seed=5, training=TRAINING)
    for each in (ensemble, again):
        each.fit(labelled, y, context)
    torch.testing.assert_close(ensemble.predict(labelled), again.predict(labelled))


def test_one_held_out_network_chooses_for_all_members() -> None:
    steps: list[int] = []
    view, y = make_view()
    context = FitContext(3, training=TRAINING, on_step=lambda i, n, _: steps.append(i))
    SPNEnsemble(members=3).fit(view, y, context)
    # Two members beside the network; at 40 labels, three networks hold out.
    assert len(steps) == (2 + 3) * 20


def test_it_goes_on_from_disk(tmp_path: Path) -> None:
    ensemble, view, _ = fitted(members=2)
    ensemble.save(tmp_path)
    other = SPNEnsemble(members=2)
    other.load_for_fit(tmp_path)
    assert torch.equal(other.log_density(view), ensemble.log_density(view))
    assert other.shares == ensemble.shares
    untouched = SPNEnsemble(members=4)
    untouched.load_for_fit(tmp_path)  # there are not so many members
    assert not untouched.shares


def test_snapshots_are_trained_on_from_one_another() -> None:
    view, y = make_view()
    ensemble = Ensemble(members=3, training=TRAINING, snapshots=0.25)
    ensemble.fit(view, y, CONTEXT)
    member, points = copy.deepcopy(view.network), view.points[view.indices]
    short = TrainSettings(min_steps=5, max_steps=5)
    for number in range(2):
        train(member, points, y, short, seed=derived_seed(4, number), start="continue")
        logits = predict_logits(member, compute_features(member, view.points))
        torch.testing.assert_close(ensemble.sample(view)[:, number + 1], logits.log_softmax(1))


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_of_steps_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(SpinalError, match="snapshots is a share"):
        Ensemble(snapshots=share)
