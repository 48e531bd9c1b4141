"""Predictions of the network and the posterior of a learner."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from spinal import networks
from spinal.data import Pool
from spinal.learner.assessment import Assessment
from spinal.learner.features import FeatureCache
from spinal.learner.seeds import Purpose, round_seed
from spinal.learner.settings import LearnerSettings, NotFittedError
from spinal.learner.start import Given
from spinal.networks import Network, compute_features
from spinal.posteriors import Posterior, View
from spinal.probabilities import entropy, margin

Indices = NDArray[np.int64]
By = Literal["method", "network", "spn"]

#: Points per batch in `Predictor.assess`.
_BATCH = 8192


class Predictor:
    """Predicts with the network and the posterior that were fitted last.

    The base class of `ActiveLearner`, which chooses points and trains both.

    Args:
        pool: the points, with their labels as far as they are known.
        network: computes features.
        posterior: gives class probabilities.
        settings: settings of the learner.
        device: where the network computes.
    """

    def __init__(
        self,
        pool: Pool,
        network: Network,
        posterior: Posterior,
        settings: LearnerSettings,
        device: torch.device,
    ) -> None:
        self.pool = pool
        self.posterior = posterior
        self.settings = settings
        self.device = device
        #: Number of fits.
        self.rounds = 0
        self._cache: FeatureCache | None = None
        self._start: Posterior | None = None
        self._set_network(network)

    @property
    def seed(self) -> int:
        """The seed for all randomness."""
        return self.settings.seed

    def predict_log_proba(self, points: Any, *, by: By = "method") -> NDArray[np.float32]:
        """Natural logarithms of the class probabilities, ``[N, C]``.

        Args:
            points: any points of the pool's kind, in it or not; or the result of `view`.
            by: ``method`` for its posterior, ``network`` for the head of the network, or ``spn``
                for the circuit alone, if the posterior combines it with other predictions.

        Raises:
            NotFittedError: before the first `fit` or `ActiveLearner.start_from`.
            SpinalError: if the posterior has no such part.
        """
        view = self.view(points)
        if by == "method":
            log_probs = self._posterior.predict(view, seed=self._round_seed(Purpose.SAMPLES))
        elif by == "network":
            if isinstance(self._start, Given):
                self._trained()
            log_probs = networks.predict_logits(self.network, view.features).log_softmax(1)
        else:
            log_probs = self._posterior.predict_part(view, by)
        return log_probs.numpy()

    def predict_proba(self, points: Any, *, by: By = "method") -> NDArray[np.float32]:
        """Class probabilities ``[N, C]``; see `predict_log_proba`."""
        return np.exp(self.predict_log_proba(points, by=by))

    def predict(self, points: Any, *, by: By = "method") -> NDArray[np.int64]:
        """The most probable class of each point, as a number ``[N]``; see `predict_log_proba`."""
        return self.predict_log_proba(points, by=by).argmax(1)

    def assess(self, points: Any) -> Assessment:
        """Uncertainty and density of any points, computed in batches."""
        points = self.pool.points_like(points)
        network = self._fitted().network
        entropies, margins, densities = [], [], []
        for rows in np.array_split(np.arange(len(points)), -(-len(points) // _BATCH)):
            view = View(network, points, rows, compute_features(network, points, rows))
            log_probs_N_C = self._posterior.predict(view, seed=self._round_seed(Purpose.SAMPLES))
            entropies.append(entropy(log_probs_N_C))
            margins.append(margin(log_probs_N_C))
            if "log_density" in self._posterior.provides:
                densities.append(self._posterior.log_density(view))
        return Assessment(
            torch.cat(entropies).numpy(),
            torch.cat(margins).numpy(),
            torch.cat(densities).numpy() if densities else None,
        )

    def view(self, points: Any) -> View:
        """Features of any points under the current network, to reuse in several predictions.

        Raises:
            NotFittedError: before the first `fit`.
        """
        self._fitted()
        if isinstance(points, View):
            return points
        points = self.pool.points_like(points)
        features = compute_features(self.network, points)
        return View(self.network, points, np.arange(len(points)), features)

    def fitted_share(self) -> float:
        """The accuracy of the network on its own training labels, from 0 to 1.

        Reserved points (see `SPN`) are not counted. A value well below 1 means that the network was
        trained for too few steps to learn the hard points. Uncertainty sampling asks for hard
        points, so it then looks worse than it is.

        Raises:
            NotFittedError: before the first `fit`.
        """
        cache, indices, labels = self._trained(), self.pool.labelled_indices, self.pool.labels
        reserved = self.posterior.reserved(self.network, indices, labels, seed=0)
        learned = np.ones(len(labels), bool) if reserved is None else ~reserved.numpy()
        guesses = self.predict(cache.view(indices[learned]), by="network")
        return float((guesses == labels[learned]).mean())

    def _set_network(self, network: Network) -> None:
        """Use this network from now on."""
        self.network = network.to(self.device)
        self.network.preprocess.fills_missing = self.posterior.takes_missing
        self._n_classes = network.config.get("n_classes", len(self.pool.classes))
        if self.settings.training.dropout is not None:
            networks.set_dropout(self.network, self.settings.training.dropout)

    def _fit_preprocess(self) -> None:
        """Set mean and standard deviation of the inputs, if they are not set yet."""
        if not self.network.preprocess.fitted:
            self.network.preprocess.fit(self.pool.points)

    def _view(self, indices: Indices) -> View:
        """Points of the pool; before the first fit, without features of the network."""
        if self._cache is None:
            self._fit_preprocess()
            return View(self.network, self.pool.points, indices, torch.empty(len(indices), 0))
        return self._fitted().view(indices)

    @property
    def _posterior(self) -> Posterior:
        """The posterior; before the first fit, the model given to `start_from`."""
        return self.posterior if self.rounds or self._start is None else self._start

    def _round_seed(self, purpose: Purpose) -> int:
        return round_seed(self.seed, self.rounds, purpose)

    def _trained(self) -> FeatureCache:
        """Like `_fitted`, but a model to start from is not enough."""
        if not self.rounds:
            raise NotFittedError("the network is not trained yet: call fit() first")
        return self._fitted()

    def _fitted(self) -> FeatureCache:
        if self._cache is None:
            raise NotFittedError("the learner is not fitted yet: call fit() first")
        if len(self._cache.points) != len(self.pool.points):
            self._cache.extend(self.pool.points)
        return self._cache
