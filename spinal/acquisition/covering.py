"""Common parts of acquisition functions that cover the pool: scaled features, no duplicates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition
from spinal.acquisition.candidates import Candidates

#: Numbers per chunk.
CHUNK = 1 << 22
#: Shorter vectors are not scaled to length 1.
_LEAST_NORM = 1e-12


class Covering(Acquisition):
    """An acquisition function that does not choose duplicates.

    A candidate with exactly the features of a labelled point, or of another pick, adds no
    information. It is chosen only if nothing else is left. Of several equal candidates, a random
    one is considered.
    """

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.features is not None
        assert candidates.labelled_features is not None
        order_N = torch.randperm(len(candidates), generator=generator)
        new_N = first_occurrences(candidates.features, candidates.labelled_features, order_N)
        distinct_M, repeated = order_N[new_N], order_N[~new_N]
        if b < len(distinct_M):
            return distinct_M[self._pick_distinct(candidates, distinct_M, b, generator)]
        return torch.cat([distinct_M, repeated])[:b]

    @abstractmethod
    def _pick_distinct(
        self, candidates: Candidates, distinct_M: Tensor, b: int, generator: torch.Generator
    ) -> Tensor:
        """Choose among candidates that all differ.

        Args:
            candidates: All candidates, checked.
            distinct_M: Positions of the candidates to choose from, in random order.
            b: How many to choose, 0 < b < M.
            generator: The source of randomness.

        Returns:
            Indices ``[b]`` into ``distinct_M``.
        """


class UnitFeatures:
    r"""Features relative to the centre of the pool, scaled to length 1.

    Distances between them do not depend on the scale of the features, and are at most 2. A vector
    at the centre itself stays 0. Rows are computed when they are needed: the pool is never copied.

    Args:
        features_N_D: The candidates' features.
        positions_M: The rows that `blocks` and `rows` refer to.

    Attributes:
        dim: D.
    """

    def __init__(self, features_N_D: Tensor, positions_M: Tensor) -> None:
        self._features, self._positions = features_N_D, positions_M
        self._dtype = torch.promote_types(features_N_D.dtype, torch.float32)
        self.dim = features_N_D.shape[1]
        self._norms_N: Tensor | None = None
        self._centre_D = features_N_D.mean(0, dtype=self._dtype)

    def __len__(self) -> int:
        return len(self._positions)

    def rows(self, indices: Tensor) -> Tensor:
        """The unit vectors of some of the M rows."""
        return self.scale(self._features[self._positions[indices].to(self._features.device)])

    def blocks(self, width: int = 0) -> Iterator[Tensor]:
        """All M rows in blocks, small enough to hold ``width`` numbers for each row."""
        size = max(1, CHUNK // max(1, width, self.dim))
        for indices in torch.arange(len(self)).split(size):
            yield self.rows(indices)

    def inner_products(self, vectors_D_V: Tensor) -> Tensor:
        """Inner products of all M rows with V vectors, ``[M, V]``, without computing the rows."""
        if self._norms_N is None:
            parts = self._features.split(max(1, CHUNK // self.dim))
            self._norms_N = torch.cat([(part - self._centre_D).norm(dim=1) for part in parts])
        vectors_D_V = vectors_D_V.to(self._centre_D)
        inner_N_V = self._features.to(self._dtype) @ vectors_D_V - self._centre_D @ vectors_D_V
        inner_N_V /= self._norms_N.clamp_min(_LEAST_NORM)[:, None]
        return inner_N_V[self._positions.to(inner_N_V.device)]

    def scale(self, features_B_D: Tensor) -> Tensor:
        """Other features, relative to the same centre and scaled to length 1."""
        centred_B_D = features_B_D.to(self._dtype) - self._centre_D
        return torch.nn.functional.normalize(centred_B_D, eps=_LEAST_NORM)


def first_occurrences(features_N_D: Tensor, known_L_D: Tensor, order_N: Tensor) -> Tensor:
    """Which of the rows, in this order, differ from all earlier rows and all known rows.

    Args:
        features_N_D: The rows.
        known_L_D: The known rows.
        order_N: A permutation of the N rows.

    Returns:
        Booleans ``[N]``, in the order of ``order_N``.
    """
    seen = set(_row_hashes(known_L_D.to(features_N_D.dtype)))
    new = []
    rows_at_once = max(1, CHUNK // max(1, features_N_D.shape[1]))
    for part in order_N.split(rows_at_once):
        for row_hash in _row_hashes(features_N_D[part.to(features_N_D.device)]):
            new.append(row_hash not in seen)
            seen.add(row_hash)
    return torch.tensor(new, dtype=torch.bool)


def _row_hashes(rows_B_D: Tensor) -> list[int]:
    """A 64-bit hash of each row, so that collisions within a pool are negligible."""
    positive_zeros = rows_B_D.cpu() + 0.0  # -0.0 equals 0.0, but its bytes do not
    return [hash(row.tobytes()) for row in positive_zeros.numpy()]
