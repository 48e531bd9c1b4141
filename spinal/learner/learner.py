"""The active learner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from spinal.data import Pool
from spinal.errors import SpinalError
from spinal.files import existing_folder
from spinal.html import html_table
from spinal.learner import storage
from spinal.learner.advice import Advice, History
from spinal.learner.assessment import Choice
from spinal.learner.callbacks import Callback, OnStep, step_caller
from spinal.learner.candidates import BLOCK, CandidateSource, limit_candidates
from spinal.learner.draws import draw_unlabelled, draw_watched, pool_to_learn_from
from spinal.learner.features import FeatureCache
from spinal.learner.parts import (
    ESTIMATOR,
    AcquisitionPart,
    NetworkPart,
    PosteriorPart,
    check_match,
    default_part,
    first_acquisition,
    make_network,
    resolve_acquisition,
    resolve_posterior,
    widen,
)
from spinal.learner.predictor import Predictor
from spinal.learner.seeds import Purpose, fit_seed
from spinal.learner.settings import LearnerSettings, NotFittedError, PoolDryError
from spinal.learner.start import given_network, given_posterior
from spinal.learner.timing import Timer
from spinal.learner.training import as_arrays, train_network
from spinal.networks.network import choose_device, derived_seed
from spinal.posteriors import FitContext, Posterior, is_estimator
from spinal.posteriors.posterior import HeldOutNetwork, LearnFrom, Validation
from spinal.posteriors.vectors import POOL
from spinal.probabilities import entropy, mean_log_probs

Indices = NDArray[np.int64]


class ActiveLearner(Predictor):
    """Chooses which points to label next and trains a classifier on the labels.

    The learner never requests a label itself: a benchmark, a web page or a labelling tool calls
    `ask` and `tell`.

    Network, posterior and acquisition function can each be a name (``"lenet"``), a name with
    settings (``("lenet", {"width": 0.5})``), settings of the default (``{"masks": 50}``), or an
    object. Your own parts can have names too; see `spinal.registry`. All settings are saved with
    the learner.

    Args:
        pool: the points, with their labels as far as they are known.
        network: computes features. It can also be any `nn.Module` that `spinal.networks.wrap` can
            split without the name of a layer. None means ``lenet`` for images, ``dense`` for
            vectors.
        method: a name for a posterior and an acquisition function; see `spinal.methods`. It can
            also be any classifier with `predict_proba`, from scikit-learn or skorch, which is
            fitted to the features; points are then chosen by margin.
        acquisition: how points are chosen. It can also be any function that maps `Candidates` to
            scores ``[N]``; the points with the highest scores are asked. None for the method's own.
        seed: for all randomness.
        posterior: gives class probabilities. It can also be any classifier with `predict_proba`.
            None for the method's own.
        validation: points, of the same kind as the pool's, and labels for early stopping of the
            network.
        device: ``auto`` takes an accelerator if there is one.
        cache: folder for results that do not depend on the labels, so that the next learner for the
            same points can reuse them; None for memory.
        callbacks: objects that are called after every round and step; see `Callback`.
        settings: ``training``, ``retrain``, ``candidates``, ``learn_from``; see `LearnerSettings`.

    Examples:
        >>> from spinal import ActiveLearner, Pool, load_dataset
        >>> digits = load_dataset("digits")
        >>> pool = Pool(digits.train_images, digits.classes)
        >>> learner = ActiveLearner(pool, method="spn-cnn", seed=0)
        >>> first = learner.ask(20)
        >>> learner.tell(first, digits.train_labels[first])
        >>> learner.fit()
        >>> batch = learner.ask(10)
    """

    def __init__(
        self,
        pool: Pool,
        network: NetworkPart = None,
        method: Any = "spn-cnn",
        acquisition: AcquisitionPart = None,
        seed: int = 0,
        *,
        posterior: PosteriorPart = None,
        validation: Validation | None = None,
        device: str = "auto",
        cache: Path | None = None,
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> None:
        if is_estimator(method):
            method, posterior = ESTIMATOR, method if posterior is None else posterior
        own_posterior = resolve_posterior(posterior, default_part(method, "posterior", posterior))
        self.acquisition = resolve_acquisition(
            acquisition, default_part(method, "acquisition", acquisition)
        )
        check_match(own_posterior, self.acquisition)
        super().__init__(
            pool,
            make_network(network, pool, derived_seed(seed, Purpose.NETWORK)),
            own_posterior,
            LearnerSettings(method, seed=seed, **settings),
            choose_device(device),
        )
        self.validation = validation and as_arrays(validation, pool)
        self.cache = cache
        self.callbacks = tuple(callbacks)
        self._network_learned_from: LearnFrom = "labels"
        self._timer = Timer()
        #: The last `ask` in detail; None if its acquisition function uses no probabilities.
        self.choice: Choice | None = None
        #: Predictions of earlier models, for `advice`; None before its first call.
        self.history: History | None = None

    def __repr__(self) -> str:
        parts = (self.network, self.posterior, self.acquisition)
        from_pool = self.rounds and self.learned_from == "pool"
        return (
            f"ActiveLearner({self.settings.method}: "
            f"{', '.join(type(part).__name__ for part in parts)}; "
            f"{len(self.pool.labelled_indices)} of {len(self.pool)} points labelled, "
            f"fitted {self.rounds} times{', by the pool as well' if from_pool else ''})"
        )

    def _repr_html_(self) -> str:
        return html_table(
            "ActiveLearner",
            {
                "method": self.settings.method,
                "network": type(self.network).__name__ if not self.network.config
                else self.network.config["name"],
                "posterior": self.posterior,
                "acquisition": self.acquisition,
                "labelled": f"{len(self.pool.labelled_indices)} of {len(self.pool)} points",
                "fits": self.rounds,
            },
        )  # fmt: skip

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the last fit and ask: network, features, posterior, scoring, choice."""
        return self._timer.seconds

    @property
    def learned_from(self) -> LearnFrom:
        """Whether the last fit learned from the ``labels`` only, or also from the ``pool``."""
        by_network = self._network_learned_from
        return by_network if by_network == "pool" else self.posterior.learned_from

    @property
    def _learns_from_pool(self) -> bool:
        """Whether the posterior learns from unlabelled points."""
        can_learn = self.posterior.can_learn_from_pool(self.network)
        return can_learn and self.settings.learn_from != "labels"

    @property
    def _teaches_network(self) -> bool:
        """Whether the network learns from pseudo-labels."""
        can_learn = self.posterior.can_learn_from_pool(self.network)
        return not can_learn and self.settings.learn_from == "pool"

    def tell(self, indices: ArrayLike, labels: ArrayLike, *, correction: bool = False) -> None:
        """Record labels of points, as class numbers or names.

        Args:
            indices: indices of the points in the pool.
            labels: their classes.
            correction: whether a point that is already labelled may get another label.

        Raises:
            LabelError: for an index outside the pool, an unknown class, or a changed label without
                ``correction``. No label is recorded then.
        """
        self.pool.record(indices, labels, correction=correction)

    def start_from(self, model: Any) -> None:
        """Start with a model that was trained elsewhere.

        Until the first `fit`, it predicts, and chooses the points to ask. Training of a network
        continues from its weights. A model is not saved with the learner before that fit.

        Args:
            model: a trained `nn.Module` for these classes, or a fitted classifier with
                `predict_proba` for points of this kind, whose ``classes_`` are names or numbers of
                classes of the pool.

        Raises:
            SpinalError: if it is something else, or the learner is already fitted.
        """
        if self.rounds:
            raise SpinalError("the learner is already fitted: call start_from() before fit()")
        if isinstance(model, nn.Module):
            self._set_network(given_network(model, self.pool))
        self._start = given_posterior(model, self.pool.classes)
        self._fit_preprocess()
        self._cache = FeatureCache(self.network, self.pool.points)

    def fit(self, *, on_step: OnStep | None = None) -> None:
        """Train the network on all labelled points, then the posterior on its features.

        Args:
            on_step: called with the part in training (``network`` or ``posterior``), the step, and
                the number of steps.
        """
        indices, labels = self.pool.labelled_indices, self.pool.labels
        if not len(indices):
            raise NotFittedError("there are no labels to learn from: call ask() and tell() first")
        seed = fit_seed(self.seed, self.rounds)
        on_step = step_caller(self, on_step)
        if self._n_classes != len(self.pool.classes):
            self._set_network(widen(self.network, self.pool, seed))
        self._fit_preprocess()
        self._timer = Timer()
        with self._timer("network"):
            trained = train_network(
                self.network,
                self.pool,
                self.settings.training,
                others=pool_to_learn_from(self.pool, POOL) if self._teaches_network else None,
                reserved=self.posterior.reserved(self.network, indices, labels, seed),
                validation=self.validation,
                seed=derived_seed(seed, Purpose.NETWORK),
                start="scratch" if self.rounds == 0 else self.settings.retrain,
                on_step=None if on_step is None else lambda i, n, _: on_step("network", i, n),
            )
        self._network_learned_from = trained.learned_from
        cache = self._cache = FeatureCache(self.network, self.pool.points)
        with self._timer("features"):
            view = cache.view(indices)
        with self._timer("posterior"):
            context = self._context(seed, on_step, trained.held_out)
            self.posterior.fit(view, torch.as_tensor(labels), context)
        self.rounds += 1
        for callback in self.callbacks:
            callback.on_round(self)

    def fit_beside(self, posterior: PosteriorPart) -> Posterior:
        """Fit another posterior to the same network and the same labels, for comparison.

        Args:
            posterior: a name such as ``"logistic"``, a name with settings, or an object.

        Returns:
            The fitted posterior, for ``posterior.predict(learner.view(points))``.

        Raises:
            NotFittedError: before the first `fit`.
        """
        view = self._trained().view(self.pool.labelled_indices)
        other = resolve_posterior(posterior, "logistic")
        seed = fit_seed(self.seed, self.rounds - 1)  # of the last fit
        other.fit(view, torch.as_tensor(self.pool.labels), self._context(seed))
        return other

    def ask(self, b: int = 1) -> Indices:
        """Indices of the ``b`` points to label next, best first; if no more are left, all of them.

        They are marked as asked, and are not returned again unless they are released
        (``pool.release``). Before the first `fit` they are chosen at random, except that ``auto``
        and other kinds of herding cover the pool if points are vectors.

        Raises:
            PoolDryError: if every point of the pool is labelled or already asked.
        """
        left = self.pool.unlabelled_indices
        if not len(left):
            waiting = len(self.pool.asked_indices)
            raise PoolDryError(
                f"nothing left to ask: {len(self.pool.labelled_indices)} points are labelled"
                + (f", {waiting} are asked and wait for an answer" if waiting else "")
            )
        if b < 1:
            raise SpinalError(f"ask for one point or more, not {b}")
        generator = torch.Generator().manual_seed(self._round_seed(Purpose.CHOICE))
        acquisition = self.acquisition
        if not self.rounds:
            acquisition = first_acquisition(acquisition, self.posterior, self.network, self._start)
        left = limit_candidates(left, b, self.settings.candidates, acquisition, generator)
        asked = np.union1d(self.pool.labelled_indices, self.pool.asked_indices)
        candidates, log_density = self._source().candidates(left, asked, acquisition)
        with self._timer("choice"):
            positions = acquisition.select(candidates, b, generator)
        self.choice = None
        if candidates.log_probs is not None:
            blocks = candidates.log_probs.split(BLOCK)
            uncertainty = torch.cat([entropy(mean_log_probs(part).double()) for part in blocks])
            self.choice = Choice(left, positions.numpy(), uncertainty.numpy(), log_density)
        chosen = left[positions.numpy()]
        self.pool.mark_asked(chosen)
        return chosen

    def advice(self, more: int = 50) -> Advice | None:
        """Forecast how many predictions further labels would change, to decide when to stop.

        Call it after every `fit`: it compares the current model with the models of earlier calls,
        on the same unlabelled points. See `spinal.learner.advice`.

        Args:
            more: number of further labels.

        Returns:
            The forecast; None in the first two calls.

        Raises:
            NotFittedError: before the first `fit`.
        """
        cache, labelled = self._fitted(), self.pool.labelled_indices
        if self.history is None:
            seed = derived_seed(self.seed, Purpose.ADVICE)
            self.history = History.begin(draw_watched(self.pool, seed))
        if len(self.history.points):
            predictions = self.predict(cache.view(self.history.points))
            self.history = self.history.add(len(labelled), predictions)
        return self.history.advice(labelled, more)

    def save(self, folder: str | Path) -> None:
        """Write everything except the points to a folder, atomically."""
        saved = storage.describe(
            self.rounds,
            self.settings,
            self.network,
            self.posterior,
            self.acquisition,
            self._network_learned_from,
            self.pool.classes,
        )
        trained = (self.network, self.posterior) if self.rounds else None
        storage.save(Path(folder), saved, self.pool, self.history, trained)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        pool: Pool,
        *,
        network: NetworkPart | None = None,
        posterior: PosteriorPart = None,
        acquisition: AcquisitionPart = None,
        device: str = "auto",
        validation: Validation | None = None,
        cache: Path | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> ActiveLearner:
        """Read a learner that `save` wrote.

        Args:
            folder: the folder that was written.
            pool: a pool with the same points and classes; the saved labels are filled in.
            network: needed if the learner was constructed with your own object.
            posterior: needed if the learner was constructed with your own object.
            acquisition: needed if the learner was constructed with your own object.
            device: see the constructor.
            validation: see the constructor.
            cache: see the constructor.
            callbacks: see the constructor.

        Raises:
            FileFormatError: if the folder holds no learner, or a damaged one.
        """
        folder = existing_folder(Path(folder))
        saved = storage.read(folder)
        storage.read_labels(folder, pool)
        learner = cls(
            pool,
            **storage.constructor_arguments(folder, saved, network, posterior, acquisition),
            validation=validation,
            device=device,
            cache=cache,
            callbacks=callbacks,
        )
        learner.rounds = saved.rounds
        learner._network_learned_from = saved.network_learned_from
        learner.history = storage.load_history(folder)
        if learner.rounds:
            # Without classes that were added since the last fit: `fit` adds them.
            given = None if network is None else learner.network
            learner._set_network(storage.load_network(folder, given))
            learner.posterior.load(folder)
            learner._cache = FeatureCache(learner.network, pool.points)
        return learner

    def _source(self) -> CandidateSource:
        """Computes the inputs of acquisition functions in the current round."""
        return CandidateSource(
            self._posterior,
            self.posterior,
            self._view,
            self._view if self._cache is None else self._fitted().passing_view,
            self._timer,
            self._round_seed(Purpose.SAMPLES),
        )

    def _context(
        self,
        seed: int,
        on_step: OnStep | None = None,
        held_out: Sequence[HeldOutNetwork] = (),
    ) -> FitContext:
        """Everything that a posterior may need in addition to the labelled points."""
        cache = self._fitted()
        pool_seed = derived_seed(seed, Purpose.POOL)
        return FitContext(
            len(self.pool.classes),
            derived_seed(seed, Purpose.POSTERIOR),
            self.settings.training,
            self.settings.retrain,
            self.validation,
            lambda n: cache.view(draw_unlabelled(self.pool, n, pool_seed)),
            (lambda n: cache.view(pool_to_learn_from(self.pool, n)))
            if self._learns_from_pool
            else None,
            self.cache,
            held_out,
            None if on_step is None else lambda i, n, _: on_step("posterior", i, n),
        )
