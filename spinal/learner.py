"""The active learner: tell it labels, fit, ask what to label next, predict. All else meets here."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from torch import Tensor

from spinal import networks
from spinal.acquisition import Acquisition, Candidates, make_acquisition
from spinal.acquisition.batchbald import BatchBALD
from spinal.acquisition.scores import max_entropy
from spinal.data import Points, Pool, as_points
from spinal.errors import FileFormatError, SpinalError
from spinal.methods import find_method
from spinal.networks import TUNED, Network, TrainSettings, build_network, compute_features
from spinal.networks.network import choose_device, derived_seed
from spinal.posteriors import Posterior, View
from spinal.settings import from_mapping, to_mapping

Indices = NDArray[np.int64]

# What a seed is used for; see `derived_seed`.
_NETWORK, _POSTERIOR, _SAMPLES, _CHOICE = range(4)


class PoolDryError(SpinalError):
    """There is nothing left to ask: every point is labelled, or was asked."""


class NotFittedError(SpinalError):
    """The learner was asked for something that it has to be fitted for."""


@dataclass(frozen=True)
class LearnerSettings:
    """What an `ActiveLearner` is made of, but for pool, network and posterior themselves.

    Attributes:
        method: a name from `spinal.methods.METHODS`.
        acquisition: a name from `spinal.acquisition.ACQUISITIONS`; the method's own, if None.
        network: a name from `spinal.networks.NETWORKS`; ignored for a network that is brought.
        width: factor on its channels and features.
        training: how the network is trained.
        retrain: every fit from ``scratch``, or ``continue`` from the last one.
        candidates: assess only so many points of the pool, drawn anew each time; None: all.
        labellings: M of BatchBALD, see there; its own number, if None.
        seed: the source of all chance. Same seed, same labels: same picks.
    """

    method: str = "spn-cnn"
    acquisition: str | None = None
    network: str = "lenet"
    width: float = 1.0
    training: TrainSettings = TUNED
    retrain: Literal["scratch", "continue"] = "scratch"
    candidates: int | None = None
    labellings: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Assessment:
    """What the learner thought of the points of the pool when it was last asked.

    Attributes:
        indices: the points that it chose from, ``[N]``.
        chosen: which of these rows it chose, best first.
        uncertainty: the entropy of their class probabilities, in nats, ``[N]``.
        log_density: how usual they are, ``[N]``; None if the method cannot tell.
    """

    indices: Indices
    chosen: Indices
    uncertainty: NDArray[np.float32]
    log_density: NDArray[np.float32] | None

    def summary(self) -> dict[str, Any]:
        """The picks against the pool: entropies, and the picks' mean rank in uncertainty and
        density, from 0 (lowest of all) to 1.
        """
        levels = np.quantile(self.uncertainty, (0.05, 0.25, 0.5, 0.75, 0.95))
        described = {
            "entropy": float(self.uncertainty[self.chosen].mean()),
            "entropy_rank": self._rank(self.uncertainty),
            "pool_entropy": [round(float(level), 4) for level in levels],
        }
        if self.log_density is not None:
            described["density_rank"] = self._rank(self.log_density)
        return described

    def _rank(self, values: NDArray) -> float:
        return float((rankdata(values)[self.chosen].mean() - 1) / max(len(values) - 1, 1))


class ActiveLearner:
    """Decides which points to label next, and trains the classifier from them.

    It never calls whoever answers: a benchmark, a web page or a labelling tool drives it by `ask`
    and `tell`.

    Args:
        pool: the points, and what is known of their labels.
        network: a name, or a `Network` (see `spinal.networks.wrap` for any `nn.Module`).
        method: which posterior assesses points; see `spinal.methods`.
        acquisition: how they are chosen by it; the method's own, if not given.
        seed: the source of all chance.
        posterior: settings of the method's posterior, or a posterior to use in place of it.
        validation: points and labels for early stopping of the network.
        device: ``auto`` takes an accelerator if there is one.
        settings: more of them, see `LearnerSettings`.

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
        network: str | Network = "lenet",
        method: str = "spn-cnn",
        acquisition: str | None = None,
        seed: int = 0,
        *,
        posterior: Posterior | dict[str, Any] | None = None,
        validation: tuple[NDArray, NDArray] | None = None,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        self.pool = pool
        name = network if isinstance(network, str) else "own"
        self.settings = LearnerSettings(method, acquisition, name, seed=seed, **settings)
        found = find_method(method)
        self.acquisition = make_acquisition(acquisition or found.acquisition)
        if isinstance(self.acquisition, BatchBALD) and self.settings.labellings is not None:
            self.acquisition = replace(self.acquisition, labellings=self.settings.labellings)
        if isinstance(posterior, Posterior):
            self.posterior = posterior
        else:
            self.posterior = found.posterior(**(posterior or {}))
        _check_match(self.posterior, self.acquisition)
        self.posterior.train_like(self.settings.training, validation, self.settings.retrain)
        if isinstance(network, str):
            network = build_network(
                network,
                pool.points.shape[1:],
                len(pool.classes),
                width=self.settings.width,
                seed=derived_seed(seed, _NETWORK),
            )
        if self.settings.training.dropout is not None:
            networks.set_dropout(network, self.settings.training.dropout)
        self.device = choose_device(device)
        self.network = network.to(self.device)
        self.validation = validation
        self.rounds = 0
        #: Seconds of the last fit and ask: network, features, posterior, scoring, choice.
        self.seconds: dict[str, float] = {}
        #: What the last `ask` went by; None if its acquisition function uses no probabilities.
        self.assessment: Assessment | None = None
        self._features: _Features | None = None

    @property
    def seed(self) -> int:
        """The source of all chance."""
        return self.settings.seed

    def tell(self, indices: ArrayLike, labels: ArrayLike, *, correction: bool = False) -> None:
        """Take labels of points: class numbers, or names.

        Raises:
            LabelError: for an index outside the pool, an unknown class, or another label than
                before, unless it is said to be a ``correction``. Nothing is taken then.
        """
        self.pool.record(indices, labels, correction=correction)

    def fit(self, *, on_step: Callable[[str, int, int], None] | None = None) -> None:
        """Train the network on all labelled points, then the posterior on its features.

        Args:
            on_step: called with what is done (``network``, ``posterior``), the step, their number.
        """
        indices, labels = self.pool.labelled_indices, self.pool.labels
        if not len(indices):
            raise NotFittedError("there are no labels to learn from: ask, and tell, first")
        seed = derived_seed(self.seed, 1000 + self.rounds)
        if not self.network.preprocess.fitted:
            self.network.preprocess.fit(self.pool.points)
        self.seconds = {}
        with self._timed("network"):
            networks.train(
                self.network,
                self.pool.points[indices],
                labels,
                self.settings.training,
                validation=self.validation,
                seed=derived_seed(seed, _NETWORK),
                start="scratch" if self.rounds == 0 else self.settings.retrain,
                on_step=None if on_step is None else lambda i, n, _: on_step("network", i, n),
            )
        self._features = _Features(self.network, self.pool.points)
        with self._timed("features"):
            view = self._features.view(indices)
        with self._timed("posterior"):
            self.posterior.fit(
                view,
                torch.as_tensor(labels),
                len(self.pool.classes),
                seed=derived_seed(seed, _POSTERIOR),
                on_step=None if on_step is None else lambda i, n, _: on_step("posterior", i, n),
            )
        self.rounds += 1

    def ask(self, b: int = 1) -> Indices:
        """The ``b`` points whose labels would help most, best first; all, if fewer are left.

        They count as asked from now on, and are not returned again before they are answered or
        given back (``pool.release``). Before the first `fit` they are chosen by chance.

        Raises:
            PoolDryError: if every point of the pool is labelled, or asked already.
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
        acquisition = self.acquisition if self.rounds else make_acquisition("random")
        limit = self.settings.candidates
        if limit is not None and len(left) > max(limit, b) and acquisition.needs:
            drawn = torch.randperm(len(left), generator=generator)[: max(limit, b)]
            left = np.sort(left[drawn.numpy()])
        candidates, log_density = self._candidates(left, acquisition.needs)
        with self._timed("choice"):
            picks = acquisition.select(candidates, b, generator)
        self.assessment = None
        if candidates.log_probs is not None:
            mean = _mean_log_probs(candidates.log_probs).unsqueeze(1)
            self.assessment = Assessment(
                left, picks.numpy(), max_entropy(mean).numpy(), log_density
            )
        chosen = left[picks.numpy()]
        self.pool.mark_asked(chosen)
        return chosen

    def predict_proba(
        self, points: ArrayLike | Points, *, by: Literal["method", "network"] = "method"
    ) -> NDArray[np.float32]:
        """Class probabilities ``[N, C]``: the method's own (the SPN's), or the network's."""
        if by not in ("method", "network"):
            raise SpinalError(f"predictions are by 'method' or by 'network', not {by!r}")
        return self._log_probs(self._view(points))[by].exp().numpy()

    def predict(
        self, points: ArrayLike | Points, *, by: Literal["method", "network"] = "method"
    ) -> NDArray[np.int64]:
        """The most probable class of each point, as a number ``[N]``."""
        return self.predict_proba(points, by=by).argmax(1)

    def predict_log_proba(self, points: ArrayLike | Points) -> dict[str, NDArray[np.float32]]:
        """Log-probabilities ``[N, C]`` by the ``method`` and by the ``network``, in one pass."""
        return {by: values.numpy() for by, values in self._log_probs(self._view(points)).items()}

    def score(self, points: ArrayLike | Points) -> dict[str, NDArray[np.float32]]:
        """How unsure the learner is of any points, and how usual they are.

        Returns:
            ``uncertainty``: the entropy of the class probabilities, in nats, ``[N]``; and, for a
            method that has a density, ``log_density [N]``: low for what is unlike the labelled.
        """
        view = self._view(points)
        log_probs_N_C = self._log_probs(view)["method"]
        scores = {"uncertainty": max_entropy(log_probs_N_C.unsqueeze(1)).numpy()}
        density = self.posterior.log_density(view)
        if density is not None:
            scores["log_density"] = density.numpy()
        return scores

    def fitted_share(self) -> float:
        """How many of its labels the network gets right, from 0 to 1.

        Well below 1, it was trained for too few steps to learn the hard points. These are what
        uncertainty asks for, so that choosing then looks worse than it is.
        """
        view = self._cached().view(self.pool.labelled_indices)
        predicted = networks.predict_logits(self.network, view.features).argmax(1).numpy()
        return float((predicted == self.pool.labels).mean())

    def save(self, folder: str | Path) -> None:
        """Keep everything but the points in a folder: there whole, or as it was before."""
        folder = Path(folder)
        partial = folder.with_name(folder.name + ".part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        np.savez(partial / "pool.npz", **self.pool.state_dict())  # type: ignore[arg-type]
        if self.rounds:
            networks.save(self.network, partial / "network.safetensors")
            self.posterior.save(partial)
        kept = {
            "format": "spinal.learner/1",
            "rounds": self.rounds,
            "settings": to_mapping(self.settings),
        }
        (partial / "learner.json").write_text(json.dumps(kept, indent=2))
        for file in partial.iterdir():
            with file.open("rb") as open_file:
                os.fsync(open_file.fileno())
        old = folder.with_name(folder.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        pool: Pool,
        *,
        network: Network | None = None,
        posterior: Posterior | dict[str, Any] | None = None,
        device: str = "auto",
        validation: tuple[NDArray, NDArray] | None = None,
    ) -> ActiveLearner:
        """Read what `save` kept, for a pool of the same points.

        Args:
            folder: where it is.
            pool: the same points and classes; what is known of their labels is filled in.
            network: the user's own, if the learner was made with one.
            posterior: as at construction, if it was given there.
            device: see the constructor.
            validation: see the constructor.
        """
        folder = Path(folder)
        if not folder.exists() and folder.with_name(folder.name + ".old").exists():
            folder = folder.with_name(folder.name + ".old")  # cut off between two renames
        try:
            kept = json.loads((folder / "learner.json").read_text())
            if kept["format"] != "spinal.learner/1":
                raise FileFormatError(f"{folder}: not a learner of this version")
            settings = from_mapping(LearnerSettings, kept["settings"], str(folder))
            with np.load(folder / "pool.npz", allow_pickle=False) as state:
                pool.load_state_dict(dict(state))
        except (OSError, ValueError, KeyError) as error:
            raise FileFormatError(
                f"{folder}: holds no learner, or a damaged one ({error})"
            ) from error
        if network is None and settings.network == "own":
            raise SpinalError(
                f"{folder}: was made with a network of your own: give it as `network`"
            )
        learner = cls(
            pool,
            network if network is not None else settings.network,
            settings.method,
            settings.acquisition,
            settings.seed,
            posterior=posterior,
            validation=validation,
            device=device,
            **{
                name: getattr(settings, name)
                for name in ("width", "training", "retrain", "candidates", "labellings")
            },
        )
        learner.rounds = int(kept["rounds"])
        if learner.rounds:
            networks.load_weights(learner.network, folder / "network.safetensors")
            learner.network.to(learner.device)
            learner.posterior.load(folder)
            learner._features = _Features(learner.network, pool.points)
        return learner

    def _candidates(
        self, indices: Indices, needs: frozenset[str]
    ) -> tuple[Candidates, NDArray | None]:
        """What the acquisition function needs to know of these points, and their density."""
        arrays: dict[str, Tensor] = {"ids": torch.from_numpy(indices)}
        density = None
        if needs:
            with self._timed("features"):
                view = self._cached().view(indices)
        if "log_probs" in needs:
            with self._timed("scoring"):
                log_probs = self.posterior.log_probs(view, seed=self._round_seed(_SAMPLES))
                density = self.posterior.log_density(view)
            arrays["log_probs"] = log_probs
        if "log_density" in needs and density is not None:
            arrays["log_density"] = density
        if "moments" in needs:
            with self._timed("scoring"):
                arrays["moments"] = self.posterior.moments(view)
        if "features" in needs:
            arrays["features"] = view.features
        if "labelled_features" in needs:
            known = np.union1d(self.pool.labelled_indices, self.pool.asked_indices)
            arrays["labelled_features"] = self._cached().view(known).features
        return Candidates(**arrays), None if density is None else density.numpy()

    def _view(self, points: ArrayLike | Points) -> View:
        """Any points, in the pool or not, as the network sees them now."""
        self._cached()
        points = as_points(points)
        features = compute_features(self.network, points)
        return View(self.network, points, np.arange(len(points)), features)

    def _log_probs(self, view: View) -> dict[str, Tensor]:
        """Log-probabilities ``[N, C]`` by the method and by the network, averaged over samples."""
        seed = self._round_seed(_SAMPLES)
        log_probs_N_K_C = self.posterior.log_probs(view, seed=seed, samples=False)
        return {
            "method": _mean_log_probs(log_probs_N_K_C),
            "network": networks.predict_logits(self.network, view.features).log_softmax(1),
        }

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

    def _round_seed(self, purpose: int) -> int:
        return derived_seed(derived_seed(self.seed, 1000 + self.rounds), purpose)

    def _cached(self) -> _Features:
        if self._features is None:
            raise NotFittedError("the learner is not fitted yet: call fit() first")
        return self._features


class _Features:
    """Features of the pool under one state of the network: each computed once, when needed."""

    def __init__(self, network: Network, points: Points) -> None:
        self.network, self.points = network, points
        self._row = np.full(len(points), -1, np.int64)
        self._known: Tensor | None = None

    def view(self, indices: Indices) -> View:
        new = indices[self._row[indices] < 0]
        if len(new):
            computed = compute_features(self.network, self.points, new)
            start = 0 if self._known is None else len(self._known)
            known = computed if self._known is None else torch.cat([self._known, computed])
            self._known = known
            self._row[new] = np.arange(start, start + len(new))
        if self._known is None:
            raise SpinalError("a view of no points")
        rows = torch.from_numpy(self._row[indices])
        return View(self.network, self.points, indices, self._known[rows])


def _check_match(posterior: Posterior, acquisition: Acquisition) -> None:
    """Refuse, before anything is trained, an acquisition function that would go unserved."""
    lacking = acquisition.needs - posterior.provides - {"features", "labelled_features"}
    if lacking:
        raise SpinalError(
            f"{type(posterior).__name__} has no {' or '.join(sorted(lacking))}, which this "
            "acquisition function goes by: choose another, or method 'spn-cnn'"
        )
    if acquisition.compares_samples:
        posterior.compare_samples()


def _mean_log_probs(log_probs_N_K_C: Tensor) -> Tensor:
    """The logarithm of the mean probability over samples, ``[N, C]``."""
    return log_probs_N_K_C.logsumexp(1) - float(np.log(log_probs_N_K_C.size(1)))
