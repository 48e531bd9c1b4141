"""BAIT against explicit inverses and traces, with no rank-one update."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.bait import variance


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def case(n: int = 60, labelled: int = 5, c: int = 3, samples: int = 2) -> Candidates:
    def log_probs(rows: int, seed: int) -> Tensor:
        return (2 * draw(rows * samples, c, seed)).view(rows, samples, c).log_softmax(-1)

    return Candidates(
        log_probs=log_probs(n, 1),
        features=draw(n, 6) + 3,
        labelled_features=draw(labelled, 6, seed=2) + 3,
        labelled_log_probs=log_probs(labelled, 3),
    )


def dense(given: Candidates, b: int, regularisation: float) -> list[int]:
    """The same choice by the trace of an explicit inverse for every possible pick and drop."""
    centre = given.features.mean(0)
    x, known = (a - centre for a in (given.features, given.labelled_features))
    x, known = (a / a.norm(dim=1, keepdim=True) for a in (x, known))

    def information(rows: Tensor, log_probs: Tensor) -> Tensor:
        p = log_probs.exp().mean(1).amax(1)
        return torch.einsum("n,ni,nj->nij", p * (1 - p), rows, rows)

    each, start = information(x, given.log_probs), information(known, given.labelled_log_probs)
    needed = (each.sum(0) + start.sum(0)) / (len(x) + len(known))
    ridge = regularisation * needed.trace() / 6 * torch.eye(6).double()

    def trace(picks: list[int]) -> float:
        known = ridge + start.sum(0) + each[picks].sum(0)
        return float((torch.linalg.inv(known) @ needed).trace())

    picks: list[int] = []
    for _ in range(min(2 * b, len(x))):
        others = [i for i in range(len(x)) if i not in picks]
        picks.append(min(others, key=lambda i: trace([*picks, i])))
    while len(picks) > b:
        picks.remove(min(picks, key=lambda i: trace([j for j in picks if j != i])))
    return picks


@pytest.mark.parametrize(
    ("b", "labelled", "dtype"),
    [
        (1, 5, torch.float64), (7, 5, torch.float64), (7, 0, torch.float64),
        (40, 5, torch.float64), (7, 5, torch.float32),
    ],
)  # fmt: skip
@pytest.mark.parametrize("regularisation", [0.1, 10.0])
def test_bait_is_the_choice_by_explicit_inverses(b, labelled, dtype, regularisation):
    given = case(labelled=labelled)
    rounded = Candidates(
        given.log_probs.to(dtype),
        given.features.to(dtype),
        given.labelled_features.to(dtype),
        labelled_log_probs=given.labelled_log_probs.to(dtype),
    )
    acquisition = make_acquisition("bait", regularisation=regularisation)
    chosen = acquisition.select(rounded, b, torch.Generator().manual_seed(0))
    assert chosen.tolist() == dense(given, b, regularisation)


def test_the_variance_is_that_of_the_most_probable_class():
    p = torch.tensor([[[0.5, 0.3, 0.2], [0.7, 0.1, 0.2]], [[1.0, 0, 0], [1.0, 0, 0]]]).double()
    torch.testing.assert_close(variance(p.log()), torch.tensor([0.24, 0.0]).double())


def test_bait_goes_by_the_features_alone_when_the_model_has_no_doubt():
    given = case()
    certain = torch.tensor([0.0, -torch.inf]).double()
    half = torch.tensor([0.5, 0.5]).double().log()
    chosen = [
        make_acquisition("bait")
        .select(
            Candidates(
                p.expand(60, 1, 2), given.features, given.labelled_features,
                labelled_log_probs=p.expand(5, 1, 2),
            ),
            6, torch.Generator().manual_seed(0),
        )
        .tolist()
        for p in (certain, half)
    ]  # fmt: skip
    # Half the doubt everywhere scales all matrices alike: the same picks.
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("regularisation", [0.0, -1.0, float("inf"), float("nan")])
def test_a_regularisation_that_makes_no_sense_is_refused(regularisation):
    with pytest.raises(AcquisitionError, match="above 0"):
        make_acquisition("bait", regularisation=regularisation)
