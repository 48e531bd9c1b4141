"""Which points to ask where a point may have several classes, against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates
from spinal.acquisition.herding import covering_radius
from spinal.acquisition.multi import MultiHerding, label_doubt
from spinal.errors import DataError


def make_candidates(n: int, labelled: int, seed: int = 0) -> Candidates:
    generator = torch.Generator().manual_seed(seed)
    return Candidates(
        features=torch.randn(n, 4, generator=generator),
        labelled_features=torch.randn(labelled, 4, generator=generator),
        label_probs=torch.rand(n, 3, generator=generator),
    )


def greedy(
    candidates: Candidates, b: int, combine: str, radius: float, centre: Tensor
) -> list[int]:
    """The picks by their definition: for each, all gains are computed anew, in numpy."""
    assert candidates.features is not None
    assert candidates.labelled_features is not None
    assert candidates.label_probs is not None

    def unit(z: Tensor) -> np.ndarray:
        z = (z - centre).double().numpy()
        return z / np.linalg.norm(z, axis=1, keepdims=True)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / radius**2)

    x, known = unit(candidates.features), unit(candidates.labelled_features)
    p = candidates.label_probs.double().numpy()
    by_class = 1 - np.abs(2 * p - 1)
    doubt = by_class.mean(1) if combine == "mean" else by_class.max(1)
    trust = len(known) / (len(known) + 2 * p.shape[1])
    weight = (1 - trust) + trust * doubt / doubt.mean()
    chosen: list[int] = []
    for _ in range(b):
        covered = kernel(np.concatenate([known, x[chosen]]), x).max(0)
        gains = [
            -1 if i in chosen else (weight * np.maximum(0, k - covered)).sum()
            for i, k in enumerate(kernel(x, x))
        ]
        chosen.append(int(np.argmax(gains)))
    return chosen


@pytest.mark.parametrize("combine", ["mean", "max"])
@pytest.mark.parametrize("labelled", [1, 12])
@pytest.mark.parametrize("seed", range(3))
def test_picks_are_those_of_the_exhaustive_search(combine: str, labelled: int, seed: int) -> None:
    candidates, b = make_candidates(30, labelled, seed), 6
    assert candidates.features is not None
    centre = candidates.features.mean(0)
    unit = torch.nn.functional.normalize(candidates.features - centre)
    radius = covering_radius(unit, labelled + b)
    picks = MultiHerding(combine=combine, chance=0).select(
        candidates, b, torch.Generator().manual_seed(seed)
    )
    assert picks.tolist() == greedy(candidates, b, combine, radius, centre)


def test_doubt_about_a_point() -> None:
    probs = torch.tensor([[0.0, 1.0, 1.0], [0.5, 0.5, 0.5], [0.5, 0.0, 1.0], [0.9, 0.8, 0.3]])
    torch.testing.assert_close(label_doubt(probs), torch.tensor([0, 1, 1 / 3, 1.2 / 3]))
    torch.testing.assert_close(label_doubt(probs, "max"), torch.tensor([0, 1, 1, 0.6]))


def test_doubt_moves_the_picks() -> None:
    """Two groups that are covered alike: the one whose classes are unsure is asked first."""
    generator = torch.Generator().manual_seed(0)
    groups = torch.cat(
        [torch.tensor([[5.0, 0]]).expand(20, 2), torch.tensor([[0, 5.0]]).expand(20, 2)]
    )
    features = groups + 0.1 * torch.randn(40, 2, generator=generator)
    probs = torch.full((40, 2), 0.01)
    probs[20:] = 0.45
    candidates = Candidates(
        features=features, labelled_features=-torch.ones(40, 2), label_probs=probs
    )
    for seed in range(3):
        pick = MultiHerding(chance=0).select(candidates, 1, torch.Generator().manual_seed(seed))
        assert int(pick) >= 20


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(AcquisitionError, match="mean, max"):
        MultiHerding(combine="median")
    with pytest.raises(DataError, match="label_probs"):
        MultiHerding().select(
            Candidates(features=torch.ones(3, 2), labelled_features=torch.ones(0, 2)), 1,
            torch.Generator(),
        )  # fmt: skip
