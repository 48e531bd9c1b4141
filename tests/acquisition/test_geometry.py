"""k-center, BADGE and TypiClust against brute force, exact distributions, and made-up clusters."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.distances import Products, squared_distances_to_nearest
from spinal.acquisition.typiclust import mean_distance


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)


def select(name: str, b: int, seed: int = 0, **arrays: Tensor) -> list[int]:
    return make_acquisition(name).select(Candidates(**arrays), b, seeded(seed)).tolist()


def brute_force_farthest_first(z: np.ndarray, labelled: np.ndarray, b: int) -> list[int]:
    known, picks = list(labelled), []
    for _ in range(b):
        radius = [min(np.linalg.norm(point - other) for other in known) for point in z]
        picks.append(int(np.argmax(radius)))
        known.append(z[picks[-1]])
    return picks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_k_center_is_the_brute_force_greedy(dtype, offset):
    z, labelled = (draw(60, 5) + offset).to(dtype), (draw(4, 5, seed=1) + offset).to(dtype)
    chosen = select("k-center", 12, features=z, labelled_features=labelled)
    assert chosen == brute_force_farthest_first(z.numpy(), labelled.numpy(), 12)


def test_k_center_without_labels_starts_anywhere_and_goes_on_greedily():
    z, nothing = draw(30, 3), torch.zeros(0, 3).double()
    batches = [select("k-center", 6, s, features=z, labelled_features=nothing) for s in range(8)]
    assert len({batch[0] for batch in batches}) > 3
    for first, *others in batches:
        assert others == brute_force_farthest_first(z.numpy(), z[first : first + 1].numpy(), 5)


def test_k_center_takes_duplicates_last():
    z = torch.cat([draw(10, 3), draw(10, 3)])
    chosen = select("k-center", 10, features=z, labelled_features=torch.zeros(0, 3).double())
    assert len({i % 10 for i in chosen}) == 10


def test_distances_of_products_are_those_of_the_whole_vectors():
    a, b = draw(20, 3), draw(20, 4, seed=1)
    whole = torch.einsum("ni,nj->nij", a, b).flatten(1)
    for i in (0, 7):
        expected = (whole - whole[i]).square().sum(1)
        torch.testing.assert_close(Products(a, b).squared_distances(i), expected)
    torch.testing.assert_close(Products(a, b).squared_norms_N, whole.square().sum(1))


def test_nearest_distances_in_pieces_are_those_of_the_whole(monkeypatch):
    from spinal.acquisition import distances

    z, others = draw(50, 3), draw(7, 3, seed=1)
    expected = torch.cdist(z, others).square().amin(1)
    torch.testing.assert_close(squared_distances_to_nearest(z, others), expected)
    monkeypatch.setattr(distances, "_CHUNK", 20)
    torch.testing.assert_close(squared_distances_to_nearest(z, others), expected)


def test_badge_draws_from_its_exact_distribution():
    log_probs, z = draw(5, 6, seed=3).view(5, 2, 3).log_softmax(-1), draw(5, 2)
    p = log_probs.exp().mean(1)
    error = p - torch.nn.functional.one_hot(p.argmax(1), 3)
    gradient = torch.einsum("nc,nd->ncd", error, z).flatten(1).numpy()
    squared = np.square(gradient[:, None] - gradient[None]).sum(-1)

    first = int(np.argmax(np.square(gradient).sum(1)))
    expected = {}
    for second, third in itertools.permutations(set(range(5)) - {first}, 2):
        one = squared[first]
        two = np.minimum(one, squared[second])
        expected[first, second, third] = one[second] / one.sum() * two[third] / two.sum()
    assert sum(expected.values()) == pytest.approx(1)

    draws, generator = 3000, seeded()
    acquisition, candidates = make_acquisition("badge"), Candidates(log_probs, z)
    counts = Counter(
        tuple(acquisition.select(candidates, 3, generator).tolist()) for _ in range(draws)
    )
    assert counts.keys() <= expected.keys()
    result = scipy.stats.chisquare(
        [counts[batch] for batch in expected], [draws * p for p in expected.values()]
    )
    assert result.pvalue > 1e-3


def test_badge_goes_on_at_random_when_all_gradients_vanish():
    certain = torch.tensor([0.0, -torch.inf]).expand(20, 1, 2)
    batches = {
        tuple(select("badge", 5, s, log_probs=certain, features=torch.ones(20, 3)))
        for s in range(9)
    }
    assert all(len(set(batch)) == 5 for batch in batches)
    assert len(batches) > 5


def clusters(sizes: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Tight groups far from each other, and which each point belongs to."""
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    centres = 100 * torch.eye(len(sizes)).double()
    return centres[group] + draw(sum(sizes), len(sizes), seed), group


def test_typiclust_asks_the_largest_clusters_without_labels_first():
    z, group = clusters([20, 50, 30, 40, 25])
    labelled = z[group == 1][:1] + 0.1  # the largest is known
    chosen = select("typiclust", 4, features=z, labelled_features=labelled)
    assert group[chosen].tolist() == [3, 2, 4, 0]


def test_typiclust_picks_the_most_typical_point():
    z, group = clusters([60, 50])
    chosen = select("typiclust", 2, features=z, labelled_features=z[:0])
    for pick, members in zip(chosen, (group == 0, group == 1), strict=True):
        away = torch.cdist(z[members], z[members]).sort().values[:, 1:21].mean(1)
        assert pick == int(members.nonzero().flatten()[away.argmin()])


def test_typiclust_leaves_outliers_for_the_end():
    z, group = clusters([30, 1, 30, 30])
    chosen = select("typiclust", 4, features=z, labelled_features=z[:0])
    assert group[chosen[3]] == 1


def test_typiclust_takes_turns_when_clusters_are_fewer_than_picks():
    z, group = clusters([30, 40])
    acquisition = make_acquisition("typiclust", max_clusters=2)
    chosen = acquisition.select(Candidates(features=z, labelled_features=z[:0]), 5, seeded())
    assert group[chosen].tolist() == [1, 0, 1, 0, 1]


def test_typicality_in_pieces_is_that_of_the_whole(monkeypatch):
    from spinal.acquisition import typiclust

    z = draw(40, 3)
    expected = torch.cdist(z, z).sort().values[:, 1:6].mean(1)
    torch.testing.assert_close(mean_distance(z, 5), expected)
    monkeypatch.setattr(typiclust, "_CHUNK", 100)
    torch.testing.assert_close(mean_distance(z, 5), expected)


@pytest.mark.parametrize(("n", "nearest"), [(1, 0), (2, 1), (3, 1), (9, 4), (40, 20), (60, 20)])
def test_typicality_goes_by_at_most_half_of_a_cluster(n, nearest):
    z = draw(n, 3)
    expected = torch.cdist(z, z).sort().values[:, 1 : nearest + 1]
    expected = expected.mean(1) if nearest else torch.zeros(n)
    torch.testing.assert_close(mean_distance(z, 20), expected)


@pytest.mark.parametrize("settings", [{"max_clusters": 0}, {"neighbours": 0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(AcquisitionError, match="at least 1"):
        make_acquisition("typiclust", **settings)
