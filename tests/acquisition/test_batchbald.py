"""BatchBALD against joint entropies summed over all labellings, and against its authors' code."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.batchbald import batchbald
from spinal.acquisition.labellings import Labellings
from spinal.acquisition.scores import bald

FIXTURE = Path(__file__).parent / "fixtures/batchbald_redux.json"


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, k: int, c: int, seed: int = 0, spread: float = 1.5) -> Tensor:
    return (spread * torch.randn(n, k, c, generator=seeded(seed)).double()).log_softmax(-1)


def linear_models(n: int, k: int, c: int, seed: int = 0, doubt: float = 0.3) -> Tensor:
    """Linear classifiers that differ a little: points correlate, as they do in practice."""
    generator = seeded(seed)
    x = torch.randn(n, 8, generator=generator) * 2 * torch.rand(n, 1, generator=generator)
    common = 2 * torch.randn(1, 8, c, generator=generator)
    w = common + 3 * doubt * torch.randn(k, 8, c, generator=generator)
    return torch.einsum("nd,kdc->nkc", x, w).log_softmax(-1)


def brute_force_information(log_probs_N_K_C: Tensor, batch: list[int]) -> float:
    """I(y_S; w) by summing over every labelling."""
    p = log_probs_N_K_C.double().exp().numpy()
    joint = 0.0
    for labels in itertools.product(range(p.shape[2]), repeat=len(batch)):
        each = np.prod([p[i, :, y] for i, y in zip(batch, labels, strict=True)], axis=0)
        joint -= each.mean() * math.log(each.mean())
    return joint + sum(float((p[i] * np.log(p[i])).sum(1).mean()) for i in batch)


def brute_force_batch(log_probs_N_K_C: Tensor, b: int) -> tuple[list[int], list[float]]:
    batch: list[int] = []
    scores: list[float] = []
    for _ in range(b):
        left = [i for i in range(len(log_probs_N_K_C)) if i not in batch]
        value = {i: brute_force_information(log_probs_N_K_C, [*batch, i]) for i in left}
        batch.append(max(left, key=value.__getitem__))
        scores.append(value[batch[-1]])
    return batch, scores


@pytest.mark.parametrize(("n", "k", "c", "b"), [(7, 3, 2, 4), (6, 5, 3, 4), (5, 8, 4, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_batches_are_those_of_brute_force(n, k, c, b, dtype):
    for seed in range(3):
        log_probs = draw(n, k, c, seed=seed).to(dtype)
        picks, gains = batchbald(log_probs, b, seeded())
        expected, scores = brute_force_batch(log_probs, b)
        assert picks.tolist() == expected
        np.testing.assert_allclose(gains.cumsum(0).numpy(), scores, atol=2e-6)


def test_drawn_labellings_give_the_exact_information_within_their_error():
    log_probs, batch = draw(12, 10, 3, spread=1.0), [3, 7, 1, 5]
    exact = [brute_force_information(log_probs, [*batch, i]) for i in range(12)]
    known_already = brute_force_information(log_probs, batch)
    rounds = []
    for seed in range(8):
        known, generator = Labellings(10, 70, 1 << 16, torch.device("cpu")), seeded(seed)
        for i in batch:  # of four points there are 81 labellings
            known.add(log_probs[i], generator)
        rounds.append(known.information(log_probs))
    estimates = torch.stack(rounds).numpy()
    others = [i for i in range(12) if i not in batch]
    error = estimates.std(0, ddof=1) / math.sqrt(len(rounds))
    truth = np.array(exact) - known_already
    assert (np.abs(estimates.mean(0) - truth) <= 5 * error + 1e-6)[others].all()
    assert 0 < error[others].max() < 0.02


def test_one_point_is_that_of_bald():
    log_probs = linear_models(200, 10, 5)
    picks, gains = batchbald(log_probs, 1, seeded())
    assert picks.item() == bald(log_probs).argmax().item()
    assert gains.item() == pytest.approx(bald(log_probs).max().item())


def test_duplicates_are_not_picked_twice_in_a_row():
    distinct = linear_models(40, 60, 4, doubt=0.1)
    doubled = torch.cat([distinct, distinct])
    top_two = make_acquisition("bald").select(Candidates(doubled), 2, seeded())
    assert len({int(i) % 40 for i in top_two}) == 1  # the case that BALD fails
    picks, _ = batchbald(doubled, 8, seeded())
    original = [int(i) % 40 for i in picks]
    assert all(i != j for i, j in itertools.pairwise(original))


def test_gains_fall_and_sum_to_no_more_than_the_samples_can_tell():
    _, gains = batchbald(linear_models(300, 40, 10, doubt=0.1), 12, seeded())
    assert (gains.diff() <= 0.01).all()
    assert gains.sum() <= math.log(40)


POOLS = {
    "that agree": lambda: linear_models(200, 20, 10, doubt=0.05, seed=3),
    "that differ": lambda: linear_models(200, 20, 10, doubt=0.3, seed=3),
    "used up soon": lambda: linear_models(200, 20, 10, doubt=1.0, seed=3),
    # Each point tells something else, so that gains hardly fall: the hardest to leave out.
    "independent": lambda: draw(200, 100, 3, spread=0.7),
    # Little is known and estimates are poor: earlier ones are no bounds without a margin.
    "noisy": lambda: draw(300, 50, 2, spread=0.5),
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("labellings", [50, 2000])
def test_leaving_candidates_out_changes_nothing(pool, labellings, monkeypatch):
    monkeypatch.setattr("spinal.acquisition.batchbald._BLOCK", 2)  # as many left out as can be
    log_probs = POOLS[pool]()
    eager = batchbald(log_probs, 10, seeded(), labellings, lazy=False)
    lazy = batchbald(log_probs, 10, seeded(), labellings, lazy=True)
    assert lazy[0].tolist() == eager[0].tolist()
    torch.testing.assert_close(lazy[1], eager[1], atol=1e-6, rtol=0)


def test_the_buffer_changes_time_and_not_the_result():
    log_probs = linear_models(150, 20, 10, doubt=0.1)
    whole = batchbald(log_probs, 6, seeded(), 1000, buffer=1 << 24)
    pieces = batchbald(log_probs, 6, seeded(), 1000, buffer=1 << 12)
    assert whole[0].tolist() == pieces[0].tolist()


def test_a_batch_goes_on_when_the_samples_are_used_up():
    """Two models that one label tells apart: the next point is as good as the first one was."""
    log_probs = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]] * 3 + [[[0.5, 0.5], [0.5, 0.5]]] * 5).log()
    picks, gains = batchbald(log_probs, 5, seeded())
    assert sorted(picks[:3].tolist()) == [0, 1, 2]
    assert len(set(picks.tolist())) == 5
    np.testing.assert_allclose(gains.numpy(), [math.log(2)] * 3 + [0, 0], atol=1e-6)


def test_labels_that_leave_no_doubt_about_the_model_leave_the_others_as_they_are():
    """Two samples are sure of their own class at point 0: its label may settle everything."""
    log_probs = draw(6, 5, 4)
    log_probs[0] = torch.tensor([0.4, 0.6, 1e-12, 1e-12]).double().log().expand(5, 4)
    log_probs[0, 0] = torch.tensor([1e-12, 1e-12, 1.0, 1e-12]).double().log()
    log_probs[0, 1] = torch.tensor([1e-12, 1e-12, 1e-12, 1.0]).double().log()
    known = Labellings(5, 100, 1 << 16, torch.device("cpu"))
    known.add(log_probs[0], seeded())
    before = brute_force_information(log_probs, [0])
    exact = [brute_force_information(log_probs, [0, i]) - before for i in range(1, 6)]
    np.testing.assert_allclose(known.information(log_probs[1:]).numpy(), exact, atol=2e-6)


def test_a_batch_starts_anew_rather_than_pick_points_that_tell_next_to_nothing():
    _, gains = batchbald(linear_models(300, 10, 10, doubt=1.0), 30, seeded())
    jumps = (gains.diff() > 0.1).nonzero().flatten() + 1
    assert len(jumps) > 2
    assert gains.min() > 0.005 * gains[0]


def test_impossible_classes_do_no_harm():
    certain = torch.full((30, 5, 4), -torch.inf)
    certain.scatter_(2, torch.randint(4, (30, 5, 1), generator=seeded()), 0.0)
    for labellings in (1, 10_000):
        picks, gains = batchbald(certain, 6, seeded(), labellings)
        assert len(set(picks.tolist())) == 6
        assert gains.isfinite().all()
        assert (gains >= 0).all()


@pytest.mark.parametrize("settings", [{"labellings": 0}, {"buffer": 0}])
def test_settings_without_room_are_refused(settings):
    with pytest.raises(AcquisitionError, match="at least 1"):
        make_acquisition("batchbald", **settings)


@pytest.mark.parametrize("case", json.loads(FIXTURE.read_text()), ids=lambda case: case["regime"])
def test_parity_with_batchbald_redux(case):
    """The same batches where both are exact; scores within the error of sampling elsewhere."""
    log_probs = torch.tensor(case["logits_N_K_C"], dtype=torch.float64).log_softmax(-1)
    picks, gains = batchbald(log_probs, len(case["indices"]), seeded(), case["num_samples"])
    ours, theirs = gains.cumsum(0).numpy(), np.array(case["scores"])
    if case["regime"] == "exact":
        assert picks.tolist() == case["indices"]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    else:
        # Of the same batch, by both, and by many more labellings than either uses.
        exact = [
            brute_force_information(log_probs, case["indices"][: i + 1]) for i in range(len(theirs))
        ]
        np.testing.assert_allclose(theirs, exact, atol=0.06)
        np.testing.assert_allclose(ours, exact, atol=0.03)
