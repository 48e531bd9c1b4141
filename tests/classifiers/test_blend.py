"""Mixtures, priors, trees and units, each against an independent computation."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from spinal.classifiers import (
    UNITS,
    Units,
    fit_trees,
    held_out_loss,
    held_out_parts,
    label_frequencies,
    mix,
    mixing_weights,
    pool_frequencies,
    shift_prior,
)
from spinal.classifiers.blend import Blend, fit_on_vectors
from spinal.classifiers.priors import check_prior, given_frequencies, overcorrected
from spinal.classifiers.sharpness import fit_sharpness
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.classifiers.units import Coordinates, plausible_kinds
from spinal.errors import FileFormatError, SpinalError
from tests.classifiers.data import clouds


def random_log_probs(n: int, classes: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, classes, generator=generator).double().log_softmax(1)


def test_weights_make_the_mixture_most_likely() -> None:
    first, second = random_log_probs(50, 3, 0), random_log_probs(50, 3, 1)
    labels = torch.arange(50) % 3
    found = float(mixing_weights([first, second], labels)[0])
    rows = torch.arange(50)

    def objective(w: float) -> float:
        p = w * first[rows, labels].exp() + (1 - w) * second[rows, labels].exp()
        return float(p.log().sum() + np.log(w) + np.log(1 - w))

    grid = np.linspace(0.001, 0.999, 999)
    assert found == pytest.approx(grid[int(np.argmax([objective(w) for w in grid]))], abs=2e-3)


def test_a_mixture_is_a_mean_of_probabilities() -> None:
    first, second = random_log_probs(5, 3, 0), random_log_probs(5, 3, 1)
    weights = torch.tensor([0.3, 0.7]).double()
    expected = 0.3 * first.exp() + 0.7 * second.exp()
    torch.testing.assert_close(mix([first, second], weights).exp(), expected)


def test_equal_counts_are_taken_for_chance_and_unequal_ones_are_not() -> None:
    by_chance = torch.tensor([4, 7, 5, 6, 3, 5, 8, 4, 5, 3])
    assert (label_frequencies(by_chance) - 0.1).abs().max() < 0.02
    long_tail = torch.tensor([200, 80, 30, 12, 5, 2])
    expected = long_tail / long_tail.sum()
    assert (label_frequencies(long_tail) - expected).abs().max() < 0.02
    torch.testing.assert_close(label_frequencies(by_chance).sum(), torch.tensor(1.0).double())
    assert (label_frequencies(torch.tensor([9, 0, 0])) > 0).all()


def test_the_step_to_other_frequencies_is_half_as_long_again_on_a_network() -> None:
    before, wanted = torch.tensor([0.5, 0.3, 0.2]).double(), torch.full((3,), 1 / 3).double()
    shifted = overcorrected(wanted, before)
    steps = [(q / q[0]).log() - (before / before[0]).log() for q in (shifted, wanted)]
    torch.testing.assert_close(steps[0], 1.5 * steps[1])
    torch.testing.assert_close(shifted.sum(), torch.tensor(1.0).double())
    torch.testing.assert_close(overcorrected(before, before), before)


def test_a_shift_of_the_prior_is_bayes_rule() -> None:
    likelihood = torch.rand(7, 3, generator=torch.Generator().manual_seed(0)).double()
    before, after = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.1, 0.1, 0.8]).double()
    posterior = (likelihood * before / (likelihood @ before)[:, None]).log()
    expected = likelihood * after / (likelihood @ after)[:, None]
    torch.testing.assert_close(shift_prior(posterior, before, after).exp(), expected)


def test_the_pool_tells_how_frequent_classes_are() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4000, generator=generator).double() + 3 * (torch.arange(4000) < 3200)
    before = torch.tensor([0.5, 0.5]).double()
    # Normals at 0 and 3, in equal parts: the log-odds are linear.
    log_probs = torch.stack([torch.zeros_like(z), 3 * z - 4.5], 1).log_softmax(1)
    assert pool_frequencies(log_probs, before, before, 1)[1] == pytest.approx(0.8, abs=0.02)
    guarded = pool_frequencies(log_probs, before, before, 10**9)
    torch.testing.assert_close(guarded, before, atol=1e-5, rtol=0)


def test_sharpness_is_found() -> None:
    truth = random_log_probs(20000, 4, 3)
    labels = truth.exp().multinomial(1, generator=torch.Generator().manual_seed(0)).squeeze(1)
    assert fit_sharpness((3 * truth).log_softmax(1), labels) == pytest.approx(1 / 3, rel=0.1)
    assert fit_sharpness(truth[:0], labels[:0]) == 1


def test_a_power_is_drawn_to_the_usual_one() -> None:
    truth = random_log_probs(200, 4, 3)
    labels = truth.exp().multinomial(1, generator=torch.Generator().manual_seed(0)).squeeze(1)
    said = (3 * truth).log_softmax(1)
    free, drawn, bound = (fit_sharpness(said, labels, 1.2, pull) for pull in (0.0, 30.0, 1e6))
    assert free < drawn < bound == pytest.approx(1.2, rel=0.07)
    grid = torch.logspace(-1, 0.7, 35).tolist()
    losses = [
        200 * float(held_out_loss((b * said).log_softmax(1), labels)) + 30 * np.log(b / 1.2) ** 2
        for b in grid
    ]
    assert drawn == pytest.approx(grid[int(np.argmin(losses))])


def test_a_mixture_of_calibrated_predictions_is_too_unsure_without_a_power() -> None:
    """Each of two sees half of the evidence: each is calibrated, their mean is not."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(2, (20000,), generator=generator)
    sides = (2 * labels - 1)[:, None] + 1.2 * torch.randn(20000, 2, generator=generator).double()
    logits = 2 * sides / 1.2**2  # log p(1 | x) - log p(0 | x)
    experts = [torch.stack([0 * z, z], 1).log_softmax(1) for z in logits.T]
    mixed = mix(experts, torch.tensor([0.5, 0.5]).double())
    assert [fit_sharpness(expert, labels) for expert in experts] == pytest.approx([1, 1], abs=0.1)
    power = fit_sharpness(mixed, labels)
    assert power > 1.2
    accuracy = float((mixed.argmax(1) == labels).double().mean())
    before, after = (float((b * mixed).softmax(1).amax(1).mean()) for b in (1.0, power))
    assert abs(before - accuracy) > 0.05
    assert abs(after - accuracy) < 0.02


def test_the_power_of_a_blend_leaves_the_most_probable_class() -> None:
    x, y = clouds(200, 6, 4)
    blend = fit_on_vectors(x, y, 4)
    assert blend.power is not None
    without = replace(blend, power=None).log_probs(x)
    expected = (float(blend.power) * without).log_softmax(1)
    torch.testing.assert_close(blend.log_probs(x), expected)
    assert (expected.argmax(1) == without.argmax(1)).all()


def test_other_class_frequencies_multiply_the_odds_whatever_the_power() -> None:
    x, y = clouds(200, 6, 2)
    blend = replace(fit_on_vectors(x, y, 2), power=torch.tensor(2.0))
    # One classifier alone: in a mixture, the weights would depend on the frequencies, too.
    blend = replace(blend, weights=torch.tensor([0.0, 1.0, 0.0]).double())
    odds = [
        blend.with_prior(torch.tensor([1 - share, share]).double()).log_probs(x).diff(dim=1)
        for share in (0.5, 0.9)
    ]
    torch.testing.assert_close(odds[1] - odds[0], torch.full_like(odds[0], np.log(9)))


def test_the_loss_counts_one_mistake_more() -> None:
    certain = torch.tensor([[0.0, -12.0]] * 10).log_softmax(1)
    modest = torch.tensor([[0.9, 0.1]] * 10).log()
    labels = torch.zeros(10, dtype=torch.long)
    assert held_out_loss(modest, labels) < held_out_loss(certain, labels)


def test_trees_predict_like_the_trees_that_were_grown() -> None:
    x, y = clouds(150, 5, 3)
    trees, held = fit_trees(x, y, 4, 0)
    probs = trees.log_probs(x).exp()
    torch.testing.assert_close(probs.sum(1), torch.ones(150).double())
    assert (probs > 0).all()
    # Grown until pure, a tree is right on what it saw: about two thirds of the trees each.
    assert (probs.argmax(1) == y).all()
    leaves = trees.leaves(x)
    assert (trees.feature[leaves] == -1).all()
    row, tree = 17, 3
    node = int(trees.roots[tree])
    while trees.feature[node] >= 0:
        right = float(x[row].float()[trees.feature[node]]) > float(trees.threshold[node])
        node = int(trees.children[node, int(right)])
    assert node == leaves[row, tree]
    assert 0.5 < float((held.argmax(1) == y).double().mean()) < 1


@pytest.mark.parametrize("kind", UNITS)
def test_units_do_what_they_say(kind: str) -> None:
    x, _ = clouds(50, 4, 2)
    x = x * torch.tensor([1.0, 10.0, 0.1, 5.0])
    z = Units.fit(x, kind)(x)  # type: ignore[arg-type]
    torch.testing.assert_close(z.mean(0), torch.zeros(4).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(z.square().sum(1).mean(), torch.tensor(1.0).double())
    if kind == "each":
        torch.testing.assert_close(z.square().mean(0), torch.full((4,), 0.25).double())
    if kind == "direction":
        torch.testing.assert_close(Units.fit(x, kind)(3 * x), z)  # type: ignore[arg-type]


def test_coordinates_keep_distances() -> None:
    for n, d in ((50, 6), (10, 40)):
        x, _ = clouds(n, d, 2)
        units = Units.fit(x, "common")
        z = Coordinates.fit(x, units)(x)
        assert z.shape[1] <= min(n, d)
        torch.testing.assert_close(torch.cdist(z, z), torch.cdist(units(x), units(x)))


def test_features_in_different_units_are_not_given_a_common_one() -> None:
    x, _ = clouds(50, 4, 2)
    assert plausible_kinds(x) == UNITS
    assert plausible_kinds(x * torch.tensor([1.0, 1.0, 1.0, 1e4])) == ("each",)


@pytest.mark.parametrize("value", [1e200, float("inf"), float("nan")])
def test_features_that_are_no_numbers_are_refused(value: float) -> None:
    x, y = clouds(20, 3, 2)
    x[3, 1] = value
    with pytest.raises(SpinalError, match="finite"):
        fit_on_vectors(x, y, 2)


def test_the_blend_leaves_out_whoever_is_bad() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(400, 2, generator=generator).double()
    y = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).long()  # for trees alone
    blend = fit_on_vectors(x, y, 2)
    assert blend.shares()["trees"] > 0.9
    assert (blend.log_probs(x).argmax(1) == y).double().mean() > 0.95


@pytest.mark.parametrize("d", [5, 310])
def test_a_blend_is_kept_as_tensors(d: int) -> None:
    x, y = clouds(60, d, 3)
    blend = fit_on_vectors(x, y, 3)
    again = from_tensors(Blend, to_tensors(blend), "here", blend.gaussian.circuit)
    torch.testing.assert_close(again.log_probs(x), blend.log_probs(x))
    assert again.shares() == blend.shares()
    assert (again.trees is None) == (d > 300)
    earlier = {name: t for name, t in to_tensors(blend).items() if name != "power"}
    assert from_tensors(Blend, earlier, "here", blend.gaussian.circuit).power is None
    damaged = {name: t for name, t in to_tensors(blend).items() if name != "gaussian/axes"}
    with pytest.raises(FileFormatError, match="without axes"):
        from_tensors(Blend, damaged, "here", blend.gaussian.circuit)


def test_all_folds_hold_out_every_point_once() -> None:
    x, y = clouds(23, 3, 3)
    parts = held_out_parts(x, y, 5, 0)
    assert (torch.stack([part.held for part in parts]).sum(0) == 1).all()


@pytest.mark.parametrize("prior", ["x", (), (0.5, 0.0), (1.0, float("nan"))])
def test_what_is_no_prior_is_refused(prior: object) -> None:
    with pytest.raises(SpinalError):
        check_prior(prior)  # type: ignore[arg-type]


def test_a_prior_has_a_number_for_each_class() -> None:
    torch.testing.assert_close(given_frequencies([1, 3], 2), torch.tensor([0.25, 0.75]).double())
    with pytest.raises(SpinalError, match="2 numbers, but 3 classes"):
        given_frequencies([1, 3], 3)


def test_almost_as_many_classes_as_points_are_no_reason_to_warn() -> None:
    x, y = clouds(30, 4, 25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_on_vectors(x, y, 25).trees is not None
