"""Held-out networks: what they never see, and how long what they chose is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spinal.classifiers.blend import refit_on_network
from spinal.classifiers.gaussian import Moments, Settings
from spinal.classifiers.priors import add_one
from spinal.errors import SpinalError
from spinal.networks import TrainSettings
from spinal.posteriors import SPN, FitContext, View, held_out
from spinal.posteriors.held_out import Held, load_held, save_held
from tests.posteriors.test_posteriors import image_view

TRAINING = TrainSettings(min_steps=3, max_steps=3)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The number of points and the start of every training of a held-out network, as it happens."""
    calls: list[tuple[int, str]] = []

    def train(network, points, labels, settings, **options):
        calls.append((len(points), options["start"]))
        return original(network, points, labels, settings, **options)

    original = held_out.train
    monkeypatch.setattr(held_out, "train", train)
    monkeypatch.setattr(held_out, "_KEEP_FROM", 20)
    monkeypatch.setattr(held_out, "_HELD_OUT", 4)  # one network from 20 labels on, as with 200
    return calls


def fit(spn: SPN, n: int, **options) -> tuple[View, torch.Tensor]:
    view, y = image_view(n)
    spn.fit(view, y, FitContext(3, training=TRAINING, **options))
    return view, y


def test_settings_are_chosen_again_when_labels_have_grown(seen: list[tuple[int, str]]) -> None:
    spn = SPN(growth=2)
    counts = []
    for n in (15, 18, 21, 35, 36, 71, 30):
        fit(spn, n)
        counts.append(len(seen))
        seen.clear()
    # Below 20 always, with two networks; then at twice 18, and where labels were taken back.
    assert counts == [2, 2, 0, 0, 1, 0, 1]


def test_at_growth_1_they_are_chosen_at_every_fit(seen: list[tuple[int, str]]) -> None:
    spn = SPN(growth=1)
    for _ in range(3):
        fit(spn, 21)
    assert len(seen) == 3


def test_a_kept_choice_is_fitted_to_all_labels(seen: list[tuple[int, str]]) -> None:
    spn = SPN(growth=4)
    fit(spn, 21)
    assert spn.blend is not None
    chosen, shares = spn.blend.gaussian.chosen, spn.shares
    view, y = fit(spn, 30)
    assert len(seen) == 1
    assert spn.shares == shares
    # The circuit by hand: moments of all 30 points, with s, m and beta as they were.
    gaussian = spn.blend.gaussian
    z = gaussian.coordinates(view.features)
    targets = torch.nn.functional.one_hot(y, 3).double()
    assert chosen is not None
    by_hand = Moments.of(z, targets).log_probs(
        z, Settings(*chosen.tolist()), add_one(targets.sum(0))
    )
    again = refit_on_network(view.features, y, 3, spn.blend)
    found = again.gaussian.log_probs(view.features).exp()
    torch.testing.assert_close(found, by_hand.exp(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("retrain", ["scratch", "continue"])
def test_a_choice_is_saved(retrain, seen: list[tuple[int, str]], tmp_path: Path) -> None:
    spn, other = SPN(growth=2), SPN(growth=2)
    fit(spn, 21, retrain=retrain)
    spn.save(tmp_path)
    other.load_for_fit(tmp_path)
    predictions = []
    for one in (spn, other):
        for n in (25, 50):  # the choice of 21 is kept, and then made again
            view, _ = fit(one, n, retrain=retrain, seed=5)
            predictions.append(one.predict(view))
    assert len(seen) == 3
    torch.testing.assert_close(predictions[0], predictions[2], rtol=0, atol=0)
    torch.testing.assert_close(predictions[1], predictions[3], rtol=0, atol=0)


def test_trained_on_a_network_never_sees_what_it_held_out(seen: list[tuple[int, str]]) -> None:
    spn = SPN(growth=1)
    fit(spn, 25, retrain="continue")
    first = spn._held[0]
    assert len(first.seen) == 20
    fit(spn, 45, retrain="continue", seed=3)
    second = spn._held[0]
    assert seen == [(20, "scratch"), (36, "continue")]
    assert set(first.unseen.tolist()) < set(second.unseen.tolist())
    assert set(first.seen.tolist()) < set(second.seen.tolist())
    assert len(second.unseen) == 9
    assert not set(second.seen.tolist()) & set(second.unseen.tolist())


def test_a_network_with_more_classes_starts_from_scratch(seen: list[tuple[int, str]]) -> None:
    spn = SPN(growth=1)
    fit(spn, 25, retrain="continue")
    held = spn._held[0]
    spn._held = [Held(held.seen, held.unseen, {**held.weights, "more": torch.zeros(1)})]
    fit(spn, 25, retrain="continue")
    assert [start for _, start in seen] == ["scratch", "scratch"]


def test_held_out_networks_are_written_and_read(tmp_path: Path) -> None:
    held = [Held(torch.arange(3), torch.tensor([7, 9]), {"a.b": torch.ones(2), "c": torch.eye(2)})]
    save_held(tmp_path / "held", held)
    (read,) = load_held(tmp_path / "held")
    assert read.seen.tolist() == [0, 1, 2]
    assert read.unseen.tolist() == [7, 9]
    assert set(read.weights) == {"a.b", "c"}
    assert torch.equal(read.weights["c"], torch.eye(2))


@pytest.mark.parametrize("growth", [0.5, float("nan")])
def test_a_growth_below_1_is_refused(growth: float) -> None:
    with pytest.raises(SpinalError, match="growth is a factor"):
        SPN(growth=growth)
