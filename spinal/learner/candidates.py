"""The inputs that an acquisition function needs for the points it chooses from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.acquisition import Acquisition, Candidates
from spinal.learner.timing import Timer
from spinal.posteriors import Posterior, View

Indices = NDArray[np.int64]

#: Candidates per block. If there are more candidates, their features are not kept.
BLOCK = 20_000


@dataclass(frozen=True, eq=False)
class CandidateSource:
    """Computes the inputs of an acquisition function.

    Attributes:
        predictor: gives class probabilities and densities.
        posterior: gives features and moments. It differs from ``predictor`` only before the first
            fit, if the learner started from a model.
        view: returns points of the pool with their features, which are cached.
        passing_view: the same, without caching the features.
        timer: measures the seconds of ``features`` and ``scoring``.
        seed: for the samples.
    """

    predictor: Posterior
    posterior: Posterior
    view: Callable[[Indices], View]
    passing_view: Callable[[Indices], View]
    timer: Timer
    seed: int

    def candidates(
        self, indices: Indices, asked: Indices, acquisition: Acquisition
    ) -> tuple[Candidates, NDArray | None]:
        """The inputs of an acquisition function, and the density of the candidates if it is known.

        Many points are assessed in blocks, to save memory.

        Args:
            indices: the candidates, ``[N]``.
            asked: the points that are labelled or wait for a label, ``[M]``.
            acquisition: the acquisition function.
        """
        needs = acquisition.needs
        arrays: dict[str, Tensor] = {"ids": torch.from_numpy(indices)}
        if needs:
            blocks = np.array_split(indices, -(-len(indices) // BLOCK))
            view = self.view if len(blocks) == 1 else self.passing_view
            start = 0
            for block in blocks:
                for name, part in self.assess(view, block, needs, acquisition).items():
                    if start == 0:
                        arrays[name] = part.new_empty(len(indices), *part.shape[1:])
                    arrays[name][start : start + len(block)] = part
                start += len(block)
        if needs & {"labelled_features", "labelled_log_probs"}:
            labelled = self.view(asked)
            arrays["labelled_features"] = self.posterior.features(labelled)
            if "labelled_log_probs" in needs:
                arrays["labelled_log_probs"] = self._log_probs(labelled, acquisition)
        density = arrays.get("log_density")
        if "log_density" not in needs:
            arrays.pop("log_density", None)
        return Candidates(**arrays), None if density is None else density.numpy()

    def assess(
        self,
        view_of: Callable[[Indices], View],
        indices: Indices,
        needs: frozenset[str],
        acquisition: Acquisition,
    ) -> dict[str, Tensor]:
        """These inputs of an acquisition function for some points, and their density if known."""
        arrays: dict[str, Tensor] = {}
        with self.timer("features"):
            view = view_of(indices)
        with self.timer("scoring"):
            if "log_probs" in needs:
                arrays["log_probs"] = self._log_probs(view, acquisition)
            has_density = "log_density" in self.predictor.provides
            if "log_density" in needs or ("log_probs" in needs and has_density):
                arrays["log_density"] = self.predictor.log_density(view)
            if "moments" in needs:
                arrays["moments"] = self.posterior.moments(view)
        if "features" in needs:
            arrays["features"] = self.posterior.features(view)
        return arrays

    def _log_probs(self, view: View, acquisition: Acquisition) -> Tensor:
        """``log_probs_N_K_C``: samples if the acquisition function compares them, else K = 1."""
        if acquisition.drops_features:
            return self.predictor.sample_without_features(view, seed=self.seed)
        if acquisition.compares_samples:
            return self.predictor.sample(view, seed=self.seed)
        return self.predictor.predict(view, seed=self.seed).unsqueeze(1)


def limit_candidates(
    left: Indices, n: int, limit: int | None, acquisition: Acquisition, generator: torch.Generator
) -> Indices:
    """The unlabelled points to assess, drawn at random if there are too many.

    Args:
        left: the unlabelled points, ascending.
        n: number of points to choose; at least this many candidates are kept.
        limit: the maximum number of candidates; None for all.
        acquisition: the acquisition function, which may have its own limit.
        generator: draws the candidates.
    """
    limits = (limit, acquisition.most_candidates)
    most = min((each for each in limits if each is not None), default=len(left))
    if len(left) <= max(most, n) or not acquisition.needs:
        return left
    drawn = torch.randperm(len(left), generator=generator)[: max(most, n)]
    return np.sort(left[drawn.numpy()])
