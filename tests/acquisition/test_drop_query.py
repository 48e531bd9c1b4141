"""DropQuery: flips by enumeration, and groups whose centres are known."""

from __future__ import annotations

import pytest
import torch

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.drop_query import nearest_to_mean, share_of_flips


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_flips_are_those_counted_one_by_one():
    log_probs = (3 * torch.randn(50, 7, 4, generator=seeded())).log_softmax(-1)
    expected = []
    for point in log_probs.double().exp().tolist():
        mean = [sum(sample[c] for sample in point) for c in range(4)]
        predicted = max(range(4), key=mean.__getitem__)
        votes = [max(range(4), key=sample.__getitem__) for sample in point]
        expected.append(sum(vote != predicted for vote in votes) / 7)
    torch.testing.assert_close(share_of_flips(log_probs), torch.tensor(expected).double())


def test_flips_in_pieces_are_those_of_the_whole(monkeypatch):
    from spinal.acquisition import candidates

    log_probs = torch.randn(50, 7, 4, generator=seeded()).log_softmax(-1)
    expected = share_of_flips(log_probs)
    monkeypatch.setattr(candidates, "_CHUNK", 60)
    assert torch.equal(share_of_flips(log_probs), expected)


def case() -> tuple[Candidates, torch.Tensor, torch.Tensor]:
    """Four groups of 30 points; in each, the first 15 flip in two of three samples."""
    group = torch.arange(4).repeat_interleave(30)
    features = 10 * torch.eye(4)[group] + torch.randn(120, 4, generator=seeded(1))
    flips = torch.arange(120) % 30 < 15
    steady = torch.tensor([[0.9, 0.1, 0.0]] * 3)
    moved = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]])
    log_probs = torch.where(flips[:, None, None], moved, steady).log()
    return Candidates(log_probs, features, features[:0]), group, flips


def test_one_central_point_of_each_group_that_flips():
    given, group, flips = case()
    chosen = make_acquisition("drop-query").select(given, 4, seeded())
    assert set(group[chosen].tolist()) == {0, 1, 2, 3}
    assert flips[chosen].all()
    unit = torch.nn.functional.normalize(given.features - given.features.mean(0))
    for pick in chosen.tolist():
        members = ((group == group[pick]) & flips).nonzero().flatten()
        away = (unit[members] - unit[members].mean(0)).norm(dim=1)
        assert pick == int(members[away.argmin()])


def test_those_that_flip_less_follow_when_few_flip():
    given, _, _ = case()
    few = Candidates(
        torch.where((torch.arange(120) < 2)[:, None, None], given.log_probs, given.log_probs[-1]),
        given.features, given.labelled_features,
    )  # fmt: skip
    chosen = make_acquisition("drop-query", choice=1).select(few, 6, seeded())
    assert {0, 1} <= set(chosen.tolist())


def test_the_nearest_to_the_mean_is_one_of_the_members():
    rows = torch.tensor([[0.0], [2.0], [4.0], [2.1]])
    assert nearest_to_mean(rows, torch.tensor([True, False, True, True])) == 3


def test_a_choice_that_makes_no_sense_is_refused():
    with pytest.raises(AcquisitionError, match="at least 1"):
        make_acquisition("drop-query", choice=0)
