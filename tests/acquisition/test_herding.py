"""Herding against an exhaustive search with the whole kernel, and on made-up groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.covering import UnitFeatures, first_occurrences
from spinal.acquisition.herding import Coverage, covering_radius, gaussian

herding = pytest.mark.parametrize("name", ["max-herding", "uncertainty-herding"])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)


def probabilities(n: int, c: int = 3, seed: int = 5) -> Tensor:
    return (2 * draw(n, c, seed)).log_softmax(-1)[:, None]


def select(name: str, b: int, seed: int = 0, **arrays: Tensor) -> list[int]:
    return make_acquisition(name).select(Candidates(**arrays), b, seeded(seed)).tolist()


def exhaustive(z: np.ndarray, labelled: np.ndarray, weights: np.ndarray, b: int) -> list[int]:
    """Every candidate's gain at every step, by the definition."""
    centre = z.mean(0)
    z, labelled = ((x - centre) for x in (z, labelled))
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    labelled = labelled / np.linalg.norm(labelled, axis=1, keepdims=True)
    away = np.linalg.norm(z[:, None] - z[None], axis=-1)
    share = max(len(z) // (len(labelled) + b), 1)
    radius = np.quantile(np.sort(away, 1)[:, share], 0.5, method="lower")

    def kernel(a: np.ndarray) -> np.ndarray:
        return np.exp(-((np.linalg.norm(a - z, axis=1) / radius) ** 2))

    covered = np.zeros(len(z))
    for point in labelled:
        covered = np.maximum(covered, kernel(point))
    picks: list[int] = []
    for _ in range(b):
        gains = [(weights * np.maximum(kernel(x) - covered, 0)).sum() for x in z]
        picks.append(int(np.argmax(gains)))
        covered = np.maximum(covered, kernel(z[picks[-1]]))
    return picks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-3, 0.0), (50.0, 100.0)])
@pytest.mark.parametrize("labelled", [0, 4])
def test_max_herding_is_the_exhaustive_search(dtype, scale, offset, labelled):
    z, known = ((scale * x + offset).to(dtype) for x in (draw(90, 5), draw(labelled, 5, seed=1)))
    chosen = select("max-herding", 12, features=z, labelled_features=known)
    assert chosen == exhaustive(z.double().numpy(), known.double().numpy(), np.ones(90), 12)


@pytest.mark.parametrize("samples", [1, 4])
def test_uncertainty_herding_is_the_exhaustive_search_with_margins_as_weights(samples):
    z, known = draw(90, 5), draw(4, 5, seed=1)
    log_probs = (2 * draw(90 * samples, 3, seed=5)).log_softmax(-1).view(90, samples, 3)
    p = np.sort(log_probs.exp().mean(1).numpy(), axis=1)
    weights = 1 - (p[:, -1] - p[:, -2])
    chosen = select(
        "uncertainty-herding", 12, log_probs=log_probs, features=z, labelled_features=known
    )
    assert chosen == exhaustive(z.numpy(), known.numpy(), weights, 12)


def test_uncertainty_herding_without_doubt_covers():
    z, known = draw(50, 4), draw(3, 4, seed=1)
    certain = torch.tensor([0.0, -torch.inf]).double().expand(50, 1, 2)
    chosen = select(
        "uncertainty-herding", 8, log_probs=certain, features=z, labelled_features=known
    )
    assert chosen == select("max-herding", 8, features=z, labelled_features=known)


def test_uncertainty_herding_leaves_what_the_model_is_sure_of():
    centres = 10 * torch.eye(3).double()
    group = torch.arange(90) % 3
    z = centres[group] + 0.1 * draw(90, 3)
    unsure = group == 1
    log_probs = torch.where(unsure[:, None], 0.5, torch.tensor([0.999, 0.001])).double().log()
    chosen = select(
        "uncertainty-herding", 5,
        log_probs=log_probs[:, None], features=z, labelled_features=z[:0],
    )  # fmt: skip
    assert all(unsure[chosen])


def test_max_herding_takes_one_of_each_group_before_a_second():
    group = torch.arange(120) % 6
    z = 10 * torch.eye(6).double()[group] + 0.1 * draw(120, 6)
    chosen = select("max-herding", 6, features=z, labelled_features=z[:0])
    assert len(set(group[chosen].tolist())) == 6
    labelled = z[group < 2][:8]
    chosen = select("max-herding", 4, features=z, labelled_features=labelled)
    assert set(group[chosen].tolist()) == {2, 3, 4, 5}


def test_lazy_search_with_many_candidates_is_the_greedy_one(monkeypatch):
    from spinal.acquisition import herding

    z = draw(400, 6)
    kernel, weights = gaussian(z, z[:150], 2.0), torch.rand(150, generator=seeded())
    greedy, picks, everyone = Coverage(kernel, weights), [], torch.arange(400)
    for _ in range(30):
        gains = greedy.gains(everyone)
        gains[picks] = -1
        picks.append(int(gains.argmax()))
        greedy.add_candidates(torch.tensor(picks[-1:]))
    lazy = Coverage(kernel, weights)
    assert lazy.pick(30) == picks
    assert torch.equal(lazy.covered_U, greedy.covered_U)
    monkeypatch.setattr(herding, "_LAZY_BLOCK", 3)
    monkeypatch.setattr(herding, "CHUNK", 1000)
    assert Coverage(kernel, weights).pick(30) == picks
    without = Coverage(kernel, weights).pick(10, taken=picks[:2])
    assert not {*picks[:2]} & {*without}


def test_the_kernel_falls_to_one_over_e_at_the_radius():
    line = torch.tensor([[0.0], [3.0], [6.0]]).double()
    away = torch.exp(-torch.tensor([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]]).double())
    torch.testing.assert_close(gaussian(line, line, 3.0), away)


def test_a_sample_of_the_pool_is_nearly_as_good_to_cover_as_all_of_it():
    z = draw(600, 4)
    rows = UnitFeatures(z, torch.arange(600)).rows(torch.arange(600))
    kernel = gaussian(rows, rows, covering_radius(rows, 10))

    def covered(sample: int) -> float:
        acquisition = make_acquisition("max-herding", sample=sample)
        chosen = acquisition.select(Candidates(features=z, labelled_features=z[:0]), 10, seeded(3))
        return float(kernel[chosen].amax(0).mean())

    assert covered(200) > 0.93 * covered(600)


@herding
def test_of_very_many_candidates_some_are_considered(name, monkeypatch):
    from spinal.acquisition import herding

    monkeypatch.setattr(herding, "_MOST_CANDIDATES", 50)
    arrays = {
        "log_probs": probabilities(90), "features": draw(90, 5), "labelled_features": draw(3, 5, 1)
    }  # fmt: skip
    assert len(set(select(name, 12, **arrays))) == 12
    assert len(set(select(name, 70, **arrays))) == 70


@pytest.mark.parametrize(("n", "expected"), [(5, 2), (100, 2), (2, 3), (1, 9), (0, 9)])
def test_the_radius_reaches_as_many_neighbours_as_each_answer_stands_for(n, expected):
    # Distances to the nearest: 1, 1, 2, 3, 4; second: 3, 2, 3, 4, 7; farthest: 10, 9, 7, 6, 10.
    line = torch.tensor([[0.0], [1.0], [3.0], [6.0], [10.0]]).double()
    assert covering_radius(line, n) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["max-herding", "uncertainty-herding", "bait", "drop-query"])
def test_what_is_labelled_or_picked_is_not_asked_again(name):
    z = draw(12, 3)
    copies = torch.cat([z, z, z[:4]])  # of the labelled ones, 0 to 3, and of each other
    copies[5, 0] = 0.0
    copies[17] = copies[5]
    copies[17, 0] = -0.0  # equal to 0.0
    arrays = {
        "log_probs": probabilities(28), "features": copies, "labelled_features": z[:4],
        "labelled_log_probs": probabilities(4),
    }  # fmt: skip
    for seed in range(4):
        chosen = select(name, 8, seed, **arrays)
        assert {i % 12 for i in chosen} == set(range(4, 12))
        assert len(set(select(name, 20, seed, **arrays))) == 20  # no other are left


def test_which_of_several_equal_candidates_is_asked_is_chance():
    z = draw(10, 3).repeat_interleave(5, 0)
    chosen = {select("max-herding", 1, s, features=z, labelled_features=z[:0])[0] for s in range(9)}
    assert len(chosen) > 1
    assert len({i // 5 for i in chosen}) == 1


@herding
def test_near_duplicates_of_a_pick_are_worth_next_to_nothing(name):
    near = draw(1, 8).repeat(300, 1) + 1e-5 * draw(300, 8, seed=1)
    z = torch.cat([near, draw(100, 8, seed=2)])
    chosen = select(name, 20, log_probs=probabilities(400), features=z, labelled_features=z[:0])
    assert sum(i < 300 for i in chosen) == 1


def test_first_occurrences_are_those_of_an_ordered_search():
    rows = torch.randint(3, (200, 3), generator=seeded()).float()
    known, order = rows[:5] + 0.0, torch.randperm(200, generator=seeded(1))
    seen = {tuple(row) for row in known.tolist()}
    expected = []
    for row in rows[order].tolist():
        expected.append(tuple(row) not in seen)
        seen.add(tuple(row))
    assert first_occurrences(rows, known, order).tolist() == expected


def test_unit_features_are_centred_and_of_length_one():
    z = draw(30, 4) + 7
    points = UnitFeatures(z, torch.arange(30).flip(0))
    rows = points.rows(torch.tensor([0, 29]))
    expected = z[[29, 0]] - z.mean(0)
    torch.testing.assert_close(rows, expected / expected.norm(dim=1, keepdim=True))
    torch.testing.assert_close(torch.cat(list(points.blocks())), points.scale(z.flip(0)))
    assert not points.scale(z.mean(0, keepdim=True)).isnan().any()


def test_too_small_a_sample_is_refused():
    with pytest.raises(AcquisitionError, match="at least 2"):
        make_acquisition("max-herding", sample=1)
