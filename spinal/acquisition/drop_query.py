"""DropQuery: points whose predicted class changes when features are dropped, spread out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import AcquisitionError
from spinal.acquisition.candidates import Candidates, chunks
from spinal.acquisition.covering import Covering, UnitFeatures
from spinal.acquisition.ranking import top
from spinal.acquisition.scores import mean_log_probs
from spinal.acquisition.typiclust import cluster_points

#: Maximum number of points that are clustered.
_MOST_CLUSTERED = 10_000


@dataclass(frozen=True)
class DropQuery(Covering):
    r"""Central points of clusters of points whose predicted class flips (Gupte et al., 2024).

    Each of the K posterior samples is the model without some of its features, such as an SPN with
    these features marginalised. A sample flips a point if it predicts another class than the mean
    of all samples. Points that more than half of the samples flip are divided into b clusters by
    k-means, and the point nearest to the centre of each is asked. If there are too few such points,
    those with the next highest share of flips are clustered too.

    Args:
        choice: The minimum number of clustered points per pick.
    """

    choice: int = 10

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs", "features", "labelled_features"})
    drops_features: ClassVar[bool] = True

    @property
    def compares_samples(self) -> bool:
        return True

    def __post_init__(self) -> None:
        if self.choice < 1:
            raise AcquisitionError(f"choice must be at least 1, not {self.choice}")

    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        assert candidates.log_probs is not None
        assert candidates.features is not None
        flips_M = share_of_flips(candidates.log_probs)[distinct_M]
        unsure = int((flips_M > 0.5).sum())
        most = max(b, min(max(unsure, self.choice * b), _MOST_CLUSTERED))
        flipped_F = top(flips_M, most, generator)
        rows_F_D = UnitFeatures(candidates.features, distinct_M).rows(flipped_F).float().cpu()
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
        group_F = torch.from_numpy(cluster_points(rows_F_D.numpy(), b, seed))
        central = [nearest_to_mean(rows_F_D, group_F == g) for g in group_F.unique()]
        # Fewer clusters than picks: add the remaining points that flip most.
        others = [i for i in range(len(flipped_F)) if i not in set(central)]
        return flipped_F[(central + others)[:b]]


def share_of_flips(log_probs_N_K_C: Tensor) -> Tensor:
    """The share of samples that predict another class than their mean, from 0 to 1, ``[N]``."""
    parts = []
    for part in chunks(log_probs_N_K_C):
        predicted_N = mean_log_probs(part.double()).argmax(1)
        parts.append((part.argmax(2) != predicted_N[:, None]).double().mean(1))
    return torch.cat(parts).cpu()


def nearest_to_mean(rows_F_D: Tensor, members_F: Tensor) -> int:
    """The row, among the members, that is nearest to their mean."""
    indices = members_F.nonzero().flatten()
    rows = rows_F_D[indices]
    return int(indices[(rows - rows.mean(0)).square().sum(1).argmin()])
