"""The active learner."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from spinal import networks
from spinal.acquisition import Acquisition, Candidates, make_acquisition
from spinal.data import Pool
from spinal.errors import SpinalError
from spinal.files import existing_folder, replacing_folder
from spinal.html import html_table
from spinal.learner import storage
from spinal.learner.advice import Advice, History
from spinal.learner.assessment import Assessment, Choice
from spinal.learner.callbacks import Callback, OnStep, step_caller
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
from spinal.learner.settings import LearnerSettings, NotFittedError, PoolDryError
from spinal.learner.start import given_network, given_posterior
from spinal.learner.training import train_network
from spinal.networks import Network, compute_features
from spinal.networks.network import choose_device, derived_seed
from spinal.posteriors import FitContext, Posterior, View, is_estimator
from spinal.posteriors.posterior import HeldOutNetwork, LearnFrom, Validation
from spinal.posteriors.vectors import POOL
from spinal.probabilities import entropy, margin, mean_log_probs

Indices = NDArray[np.int64]
By = Literal["method", "network", "spn"]

# What a seed is used for; see `derived_seed`.
_NETWORK, _POSTERIOR, _SAMPLES, _CHOICE, _POOL, _ADVICE = range(6)
#: Points per batch in `ActiveLearner.assess`.
_BATCH = 8192
#: Candidates of `ActiveLearner.ask` that are assessed at a time; of no more, features are kept.
_BLOCK = 20_000
#: Points whose predictions `ActiveLearner.advice` compares.
_WATCHED = 500


class ActiveLearner:
    """Decides which points to label next, and trains a classifier on the labels.

    The learner never requests a label itself: a benchmark, a web page or a labelling tool drives it
    by `ask` and `tell`.

    Network, posterior and acquisition function can each be a name (``"lenet"``), a name with
    settings (``("lenet", {"width": 0.5})``), settings of the default (``{"masks": 50}``), or an
    object. A name can be one of your own; see `spinal.registry`. All settings are saved with the
    learner.

    Args:
        pool: the points, with their labels as far as they are known.
        network: computes features. It can also be any `nn.Module` that `spinal.networks.wrap` can
            split without the name of a layer. None: ``lenet`` for images, ``dense`` for vectors.
        method: a name for a posterior and an acquisition function; see `spinal.methods`. It can
            also be any classifier with `predict_proba`, of scikit-learn or skorch, which is fitted
            to the features; the points are then asked by margin.
        acquisition: how points are chosen. It can also be any function that maps `Candidates` to
            scores ``[N]``; the points with the highest scores are asked. None: that of the method.
        seed: of all randomness.
        posterior: gives class probabilities. It can also be any classifier with `predict_proba`.
            None: that of the method.
        validation: points, of the kind of the pool's, and labels for early stopping of the network.
        device: ``auto`` takes an accelerator if there is one.
        cache: folder for what is computed from the points of the pool without labels, so that the
            next learner for the same points finds it; None: in memory.
        callbacks: objects that are told of every round and step; see `Callback`.
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
        self.pool = pool
        self.callbacks = tuple(callbacks)
        self.settings = LearnerSettings(method, seed=seed, **settings)
        self.posterior = resolve_posterior(posterior, default_part(method, "posterior", posterior))
        self.acquisition = resolve_acquisition(
            acquisition, default_part(method, "acquisition", acquisition)
        )
        check_match(self.posterior, self.acquisition)
        self.device = choose_device(device)
        self._set_network(make_network(network, pool, derived_seed(seed, _NETWORK)))
        self.validation = validation and (self._array(validation[0]), validation[1])
        self.cache = cache
        can_learn = self.posterior.can_learn_from_pool(self.network)
        self._learns_from_pool = can_learn and self.settings.learn_from != "labels"
        self._teaches_network = not can_learn and self.settings.learn_from == "pool"
        self._network_learned_from: LearnFrom = "labels"
        #: Number of fits.
        self.rounds = 0
        #: Seconds of the last fit and ask: network, features, posterior, scoring, choice.
        self.seconds: dict[str, float] = {}
        #: The last `ask` in detail; None if its acquisition function uses no probabilities.
        self.choice: Choice | None = None
        self._cache: FeatureCache | None = None
        self._start: Posterior | None = None
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
    def seed(self) -> int:
        """The seed of all randomness."""
        return self.settings.seed

    @property
    def learned_from(self) -> LearnFrom:
        """Whether the last fit learnt from the ``labels`` alone, or from the ``pool`` as well."""
        by_network = self._network_learned_from
        return by_network if by_network == "pool" else self.posterior.learned_from

    def tell(self, indices: ArrayLike, labels: ArrayLike, *, correction: bool = False) -> None:
        """Record labels of points, as class numbers or names.

        Args:
            indices: of the points, in the pool.
            labels: their classes.
            correction: whether a point that is already labelled may get another label.

        Raises:
            LabelError: for an index outside the pool, an unknown class, or another label than
                before without ``correction``. No label is recorded then.
        """
        self.pool.record(indices, labels, correction=correction)

    def start_from(self, model: Any) -> None:
        """Begin with a model that was trained elsewhere.

        Until the first `fit`, it predicts, and chooses the points to ask. A network is trained
        further from its weights. A model is not saved with the learner before that fit.

        Args:
            model: a trained `nn.Module` for these classes, or a fitted classifier with
                `predict_proba` for points of this kind, whose ``classes_`` are names or numbers of
                classes of the pool.

        Raises:
            SpinalError: if it is something else, or the learner is fitted already.
        """
        if self.rounds:
            raise SpinalError("the learner is fitted already: start from a model before that")
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
            raise NotFittedError("there are no labels to learn from: ask, and tell, first")
        seed = derived_seed(self.seed, 1000 + self.rounds)
        on_step = step_caller(self, on_step)
        if self._n_classes != len(self.pool.classes):
            self._set_network(widen(self.network, self.pool, seed))
        self._fit_preprocess()
        self.seconds = {}
        with self._timed("network"):
            trained = train_network(
                self.network,
                self.pool,
                self.settings.training,
                others=self._pool_indices(POOL) if self._teaches_network else None,
                validation=self.validation,
                seed=derived_seed(seed, _NETWORK),
                start="scratch" if self.rounds == 0 else self.settings.retrain,
                on_step=None if on_step is None else lambda i, n, _: on_step("network", i, n),
            )
        self._network_learned_from = trained.learned_from
        cache = self._cache = FeatureCache(self.network, self.pool.points)
        with self._timed("features"):
            view = cache.view(indices)
        with self._timed("posterior"):
            context = self._context(seed, on_step, trained.held_out)
            self.posterior.fit(view, torch.as_tensor(labels), context)
        self.rounds += 1
        for callback in self.callbacks:
            callback.on_round(self)

    def fit_beside(self, posterior: PosteriorPart) -> Posterior:
        """Fit another posterior to the same network and the same labels, to compare with.

        Args:
            posterior: a name such as ``"logistic"``, a name with settings, or an object.

        Returns:
            The fitted posterior. It predicts by ``posterior.predict(learner.view(points))``.

        Raises:
            NotFittedError: before the first `fit`.
        """
        view = self._fitted().view(self.pool.labelled_indices)
        other = resolve_posterior(posterior, "logistic")
        seed = derived_seed(self.seed, 999 + self.rounds)  # of the last fit
        other.fit(view, torch.as_tensor(self.pool.labels), self._context(seed))
        return other

    def ask(self, b: int = 1) -> Indices:
        """Indices of the ``b`` points to label next, best first; of all, if fewer are left.

        They are marked as asked, and are not returned again unless they are released
        (``pool.release``). Before the first `fit` they are chosen at random; by ``auto`` and other
        kinds of herding, if points are vectors, so that they cover the pool.

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
        generator = torch.Generator().manual_seed(self._round_seed(_CHOICE))
        acquisition = self._acquisition()
        limits = (self.settings.candidates, acquisition.most_candidates)
        limit = min((n for n in limits if n is not None), default=None)
        if limit is not None and len(left) > max(limit, b) and acquisition.needs:
            drawn = torch.randperm(len(left), generator=generator)[: max(limit, b)]
            left = np.sort(left[drawn.numpy()])
        compare = acquisition.compares_samples
        candidates, log_density = self._candidates(left, acquisition.needs, compare)
        with self._timed("choice"):
            positions = acquisition.select(candidates, b, generator)
        self.choice = None
        if candidates.log_probs is not None:
            uncertainty = entropy(mean_log_probs(candidates.log_probs).double())
            self.choice = Choice(left, positions.numpy(), uncertainty.numpy(), log_density)
        chosen = left[positions.numpy()]
        self.pool.mark_asked(chosen)
        return chosen

    def predict_log_proba(self, points: Any, *, by: By = "method") -> NDArray[np.float32]:
        """Natural logarithms of the class probabilities, ``[N, C]``.

        Args:
            points: any points of the kind of the pool's, in it or not; or the result of `view`.
            by: ``method`` for its posterior, ``network`` for the head of the network, or ``spn``
                for the circuit alone, where the posterior combines it with other predictions.

        Raises:
            SpinalError: if the posterior has no such part.
        """
        view = self.view(points)
        if by == "method":
            log_probs = self._posterior.predict(view, seed=self._round_seed(_SAMPLES))
        elif by == "network":
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
            log_probs_N_C = self._posterior.predict(view, seed=self._round_seed(_SAMPLES))
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

        A value well below 1 means that the network was trained for too few steps to learn the hard
        points. Uncertainty sampling asks for hard points, so it then looks worse than it is.
        """
        view = self._fitted().view(self.pool.labelled_indices)
        return float((self.predict(view, by="network") == self.pool.labels).mean())

    def advice(self, more: int = 50) -> Advice | None:
        """How many predictions more labels would change: whether to go on.

        Call it after every `fit`: it compares the current model with those of earlier calls, on
        the same unlabelled points. See `spinal.learner.advice`.

        Args:
            more: number of further labels.

        Returns:
            The forecast; None in the first two calls.

        Raises:
            NotFittedError: before the first `fit`.
        """
        cache, labelled = self._fitted(), self.pool.labelled_indices
        if self.history is None:
            left = np.setdiff1d(self.pool.members, labelled)
            random = np.random.default_rng(derived_seed(self.seed, _ADVICE))
            self.history = History.begin(np.sort(random.permutation(left)[:_WATCHED]))
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
        )
        with replacing_folder(Path(folder)) as partial:
            storage.write(partial, saved, self.pool)
            if self.history is not None:
                self.history.save(partial / storage.HISTORY)
            if self.rounds:
                networks.save(self.network, partial / storage.NETWORK)
                self.posterior.save(partial)

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
    ) -> ActiveLearner:
        """Read a learner that `save` wrote.

        Args:
            folder: the folder that was written.
            pool: with the same points and classes; the saved labels are filled in.
            network: needed if the learner was constructed with your own object.
            posterior: needed if the learner was constructed with your own object.
            acquisition: needed if the learner was constructed with your own object.
            device: see the constructor.
            validation: see the constructor.
            cache: see the constructor.

        Raises:
            FileFormatError: if the folder holds no learner, or a damaged one.
        """
        folder = existing_folder(Path(folder))
        saved = storage.read(folder)
        storage.read_labels(folder, pool)
        settings = saved.settings
        learner = cls(
            pool,
            storage.given_or_saved(network, saved.network, "network", folder),
            settings.method,
            storage.given_or_saved(acquisition, saved.acquisition, "acquisition", folder),
            settings.seed,
            posterior=storage.given_or_saved(posterior, saved.posterior, "posterior", folder),
            validation=validation,
            device=device,
            cache=cache,
            training=settings.training,
            retrain=settings.retrain,
            candidates=settings.candidates,
            learn_from=settings.learn_from,
        )
        learner.rounds = saved.rounds
        learner._network_learned_from = saved.network_learned_from
        if (folder / storage.HISTORY).exists():
            learner.history = History.load(folder / storage.HISTORY)
        if learner.rounds:
            # Without classes that were added since the last fit: `fit` adds them.
            given = None if network is None else learner.network
            learner._set_network(storage.load_network(folder, given))
            learner.posterior.load(folder)
            learner._cache = FeatureCache(learner.network, pool.points)
        return learner

    def _set_network(self, network: Network) -> None:
        """Use this network from now on."""
        self.network = network.to(self.device)
        self.network.preprocess.fills_missing = self.posterior.takes_missing
        self._n_classes = network.config.get("n_classes", len(self.pool.classes))
        if self.settings.training.dropout is not None:
            networks.set_dropout(self.network, self.settings.training.dropout)

    def _array(self, data: Any) -> NDArray:
        """All points of some data of the pool's kind."""
        if isinstance(data, np.ndarray):
            return data
        points = self.pool.points_like(data)
        return points[np.arange(len(points))]

    def _candidates(
        self, indices: Indices, needs: frozenset[str], compare: bool
    ) -> tuple[Candidates, NDArray | None]:
        """The inputs of the acquisition function for these points, and their density.

        Many points are assessed in blocks, so that only what is needed of them is held.
        """
        arrays: dict[str, Tensor] = {"ids": torch.from_numpy(indices)}
        if needs:
            blocks = np.array_split(indices, -(-len(indices) // _BLOCK))
            parts = [self._assess_block(block, needs, compare, len(blocks) > 1) for block in blocks]
            arrays |= {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if needs & {"labelled_features", "labelled_log_probs"}:
            asked = np.union1d(self.pool.labelled_indices, self.pool.asked_indices)
            labelled = self._view(asked)
            arrays["labelled_features"] = self.posterior.features(labelled)
            if "labelled_log_probs" in needs:
                arrays["labelled_log_probs"] = self._log_probs(labelled, compare)
        density = arrays.get("log_density")
        if "log_density" not in needs:
            arrays.pop("log_density", None)
        return Candidates(**arrays), None if density is None else density.numpy()

    def _assess_block(
        self, indices: Indices, needs: frozenset[str], compare: bool, passing: bool
    ) -> dict[str, Tensor]:
        """What an acquisition function needs of some points, and their density if it is known."""
        arrays: dict[str, Tensor] = {}
        with self._timed("features"):
            is_kept = self._cache is None or not passing
            view = self._view(indices) if is_kept else self._fitted().passing_view(indices)
        with self._timed("scoring"):
            if "log_probs" in needs:
                arrays["log_probs"] = self._log_probs(view, compare)
            has_density = "log_density" in self._posterior.provides
            if "log_density" in needs or ("log_probs" in needs and has_density):
                arrays["log_density"] = self._posterior.log_density(view)
            if "moments" in needs:
                arrays["moments"] = self.posterior.moments(view)
        if "features" in needs:
            arrays["features"] = self.posterior.features(view)
        return arrays

    def _view(self, indices: Indices) -> View:
        """Points of the pool; before the first fit, without features of the network."""
        if self._cache is None:
            self._fit_preprocess()
            return View(self.network, self.pool.points, indices, torch.empty(len(indices), 0))
        return self._fitted().view(indices)

    def _log_probs(self, view: View, compare: bool) -> Tensor:
        """``log_probs_N_K_C``: samples if the acquisition function compares them, else K = 1."""
        seed = self._round_seed(_SAMPLES)
        if compare:
            return self._posterior.sample(view, seed=seed)
        return self._posterior.predict(view, seed=seed).unsqueeze(1)

    @property
    def _posterior(self) -> Posterior:
        """What predicts: the posterior, or, before the first fit, what `start_from` was given."""
        return self.posterior if self.rounds or self._start is None else self._start

    def _acquisition(self) -> Acquisition:
        """The acquisition function; before the first fit, the nearest one that is possible."""
        if self.rounds:
            return self.acquisition
        if self._start is None:
            return first_acquisition(self.acquisition, self.posterior, self.network)
        try:
            check_match(self._start, self.acquisition)
        except SpinalError:
            return make_acquisition("margin")
        return self.acquisition

    def _context(
        self,
        seed: int,
        on_step: OnStep | None = None,
        held_out: Sequence[HeldOutNetwork] = (),
    ) -> FitContext:
        """What a posterior may need beside the labelled points."""
        return FitContext(
            len(self.pool.classes),
            derived_seed(seed, _POSTERIOR),
            self.settings.training,
            self.settings.retrain,
            self.validation,
            lambda n: self._draw_unlabelled(n, derived_seed(seed, _POOL)),
            self._draw_pool if self._learns_from_pool else None,
            self.cache,
            held_out,
            None if on_step is None else lambda i, n, _: on_step("posterior", i, n),
        )

    def _draw_unlabelled(self, n: int, seed: int) -> View:
        """At most ``n`` unlabelled points of the pool, drawn at random."""
        left = np.setdiff1d(self.pool.members, self.pool.labelled_indices)
        if len(left) > n:
            left = np.sort(np.random.default_rng(seed).choice(left, n, replace=False))
        return self._fitted().view(left)

    def _draw_pool(self, n: int) -> View:
        """The points of `_pool_indices`."""
        return self._fitted().view(self._pool_indices(n))

    def _pool_indices(self, n: int) -> Indices:
        """The same n points of the pool each time, then the labelled points not among them."""
        members = np.sort(self.pool.members)
        if len(members) > n:
            # The same for all learners, so that what is kept of these points can be used again.
            # Points that are added to the pool later change no number of those before.
            numbers = np.random.default_rng(0).random(len(self.pool.points))
            members = np.sort(members[np.argsort(numbers[members])[:n]])
        others = np.setdiff1d(self.pool.labelled_indices, members)
        return np.concatenate([members, others])

    def _fit_preprocess(self) -> None:
        """Set mean and standard deviation of the inputs, if they are not set yet."""
        if not self.network.preprocess.fitted:
            self.network.preprocess.fit(self.pool.points)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

    def _round_seed(self, purpose: int) -> int:
        return derived_seed(derived_seed(self.seed, 1000 + self.rounds), purpose)

    def _fitted(self) -> FeatureCache:
        if self._cache is None:
            raise NotFittedError("the learner is not fitted yet: call fit() first")
        if len(self._cache.points) != len(self.pool.points):
            self._cache.extend(self.pool.points)
        return self._cache
