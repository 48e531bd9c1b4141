"""Trials of settings: trained once, evaluated on the validation set, and stored on disk.

The test set is not used: only the training points of a dataset are read here.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import torch
from numpy.typing import NDArray

from spinal.data import Dataset, Points, Pool, load_dataset, make_splits
from spinal.data.splits import shuffled
from spinal.encoders import EncodedPoints, load_encoder
from spinal.encoders.points import cache_folder
from spinal.errors import FileFormatError, SpinalError
from spinal.experiments.engines.local import leave_with
from spinal.experiments.protocol import Protocol
from spinal.learner import ActiveLearner
from spinal.networks import compute_features
from spinal.posteriors import Deterministic, FitContext, Posterior, View, make_posterior
from spinal.runs import RunFolder
from spinal.settings import from_mapping, to_mapping
from spinal.threads import single_thread

#: What is tuned: the training of the network, or the recipe of the circuit on its features.
Part = Literal["network", "circuit"]

#: Values by their keys in the protocol's ``[network.training]`` or ``[posterior.recipe]``; keys of
#: tables inside are dotted, as in ``fit.learning-rate``. ``features`` is a key of ``[network]``.
Setting = dict[str, float]

# For a protocol without validation points: a fifth of its pool, but no more than in the paper.
_HELD_SHARE, _HELD_MOST = 5, 5000


@dataclass(frozen=True)
class Trial:
    """One training of one setting.

    Attributes:
        protocol: The protocol with the setting in it.
        part: The part of the protocol that is evaluated.
        setting: The setting, as it is stored with the outcome.
        labels: Number of labelled points: the initial set, and random points of the pool.
        seed: Seed of the split and of everything else.
    """

    protocol: Protocol
    part: Part
    setting: Setting
    labels: int
    seed: int

    @property
    def key(self) -> str:
        """Equal for trials with the same training, even if names of protocols differ."""
        protocol = self.protocol
        decisive: dict[str, Any] = {
            name: getattr(protocol, name)
            for name in ("initial", "pool", "validation", "stratified")
        }
        network = replace(protocol.network, preset="", training={})
        decisive["dataset"] = protocol.data_key
        decisive |= {"part": self.part, "labels": self.labels, "seed": self.seed}
        decisive |= {"network": to_mapping(network), "training": to_mapping(protocol.training())}
        if self.part == "circuit":
            decisive |= {
                "recipe": to_mapping(protocol.recipe()),
                "grid": protocol.posterior.get("grid"),
            }
        text = json.dumps(decisive, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """Accuracy and mean negative log-likelihood, in nats, on the validation set.

    The latter is infinite if training diverged.
    """

    accuracy: float
    nll: float


@single_thread()
def assess(trial: Trial, data_dir: str | Path | None = None) -> Outcome:
    """Execute a trial: train, and evaluate on the validation set.

    A circuit is evaluated by its own class probabilities, a network by its head.
    """
    protocol = trial.protocol
    plain = replace(protocol, posterior={}).to_mapping()
    trained = _trained(json.dumps(plain), trial.labels, trial.seed, data_dir)
    posterior: Posterior = Deterministic()
    if trial.part == "circuit":
        posterior = make_posterior("spn", **protocol.posterior_settings("spn"))
    context = FitContext(trained.n_classes, trial.seed, protocol.training())
    posterior.fit(trained.labelled, trained.labels, context)
    log_probs_N_C, truth_N = (
        posterior.predict(trained.held_out).double().numpy(),
        trained.held_out_labels,
    )
    nll = -float(log_probs_N_C[np.arange(len(truth_N)), truth_N].mean())
    accuracy = float((log_probs_N_C.argmax(1) == truth_N).mean())
    return Outcome(accuracy, nll if np.isfinite(nll) else float("inf"))


@dataclass(frozen=True, eq=False)
class _Trained:
    """The labelled points and the validation set, with features of a trained network."""

    labelled: View
    labels: torch.Tensor
    held_out: View
    held_out_labels: NDArray[np.int64]
    n_classes: int


@functools.lru_cache(maxsize=4)
def _trained(protocol: str, labels: int, seed: int, data_dir: str | Path | None) -> _Trained:
    """Train a network, once for all trials of circuits on it.

    Args:
        protocol: The protocol as JSON.
        labels: Number of labelled points; see `Trial`.
        seed: Seed of the split and of everything else.
        data_dir: The first folder to search for datasets.
    """
    p = from_mapping(Protocol, json.loads(protocol), "protocol")
    dataset = load_dataset(p.dataset, data_dir, data=p.data)
    points: Any = dataset.train_images
    if p.network.is_encoder:
        points = EncodedPoints(points, load_encoder(p.network.name), cache_folder())
    labelled, held_out = training_split(p, dataset, labels, seed)
    learner = ActiveLearner(
        Pool(points, dataset.classes, members=labelled),
        (p.network.architecture, p.network.options),
        "random",
        seed=seed,
        validation=(points[held_out], dataset.train_labels[held_out])
        if p.network.early_stopping
        else None,
        training=p.training(),
    )
    learner.tell(labelled, dataset.train_labels[labelled])
    learner.fit()
    views = [_view(learner, indices) for indices in (labelled, held_out)]
    return _Trained(
        views[0],
        torch.as_tensor(dataset.train_labels[labelled]),
        views[1],
        dataset.train_labels[held_out],
        len(dataset.classes),
    )


def _view(learner: ActiveLearner, indices: NDArray[np.int64]) -> View:
    points: Points = learner.pool.points
    return View(
        learner.network, points, indices, compute_features(learner.network, points, indices)
    )


def training_split(
    protocol: Protocol, dataset: Dataset, labels: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of labelled points and of validation points.

    The labelled points are the initial set of a run with this seed, and points of its pool drawn at
    random. A smaller set of labels is contained in a larger one. The validation points are the same
    as in the run; if the protocol has none, a fifth of the pool.

    Raises:
        SpinalError: if there are fewer points than labels, or fewer labels than initial points.
    """
    p = protocol
    splits = make_splits(
        len(dataset.train_labels), pool=p.pool, validation=p.validation, initial=p.initial,
        seed=seed, stratified=p.stratified, labels=dataset.train_labels if p.stratified else None,
    )  # fmt: skip
    others, held_out = splits.pool[shuffled(len(splits.pool), seed)], splits.validation
    if not len(held_out):
        size = min(len(others) // _HELD_SHARE, _HELD_MOST)
        held_out, others = np.sort(others[:size]), others[size:]
    most = p.initial + len(others)
    if not p.initial <= labels <= most:
        raise SpinalError(
            f"{p.name} cannot be tuned with {labels} labels: it begins with {p.initial}, and "
            f"{most} points can be labelled"
        )
    return np.sort(np.concatenate([splits.initial, others[: labels - p.initial]])), held_out


class Trials:
    """Trials in a file of JSON lines: written as they finish, and not repeated.

    Args:
        store: The file and its folder.
        workers: Number of parallel trials; 0 for one per core.
        data_dir: The first folder to search for datasets.
    """

    def __init__(
        self, store: RunFolder, *, workers: int = 0, data_dir: str | Path | None = None
    ) -> None:
        self.store, self.workers, self.data_dir = store, workers, data_dir
        self._lines = store.lines()
        self._known = _outcomes(self._lines, store.lines_path)

    def run(
        self, trials: Sequence[Trial], on_outcome: Callable[[Trial, Outcome, bool], None]
    ) -> list[Outcome]:
        """The outcomes of the trials, in order; trials without an outcome are executed.

        Args:
            trials: The trials.
            on_outcome: Called with each trial, its outcome, and whether it is new.
        """
        keyed = [(trial.key, trial) for trial in trials]
        for key, trial in keyed:
            if key in self._known:
                on_outcome(trial, self._known[key], False)
        left = {key: trial for key, trial in keyed if key not in self._known}
        workers = min(self.workers or os.cpu_count() or 1, max(len(left), 1))
        finished = joblib.Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")(
            joblib.delayed(_attempt)(key, trial, self.data_dir, os.getpid())
            for key, trial in left.items()
        )
        for key, outcome in finished:
            self._keep(left[key], outcome)
            for trial in (trial for other, trial in keyed if other == key):
                on_outcome(trial, outcome, True)
        return [self._known[key] for key, _ in keyed]

    def _keep(self, trial: Trial, outcome: Outcome) -> None:
        nll = outcome.nll if np.isfinite(outcome.nll) else None  # JSON has no infinity
        line = {
            "key": trial.key, "part": trial.part, "setting": trial.setting, "labels": trial.labels,
            "seed": trial.seed, "accuracy": outcome.accuracy, "nll": nll,
        }  # fmt: skip
        self._known[trial.key] = outcome
        self._lines.append(line)
        self.store.write(self._lines)


@contextmanager
def open_trials(
    path: Path, *, workers: int = 0, data_dir: str | Path | None = None
) -> Iterator[Trials]:
    """Open a file of trials, for one process at a time.

    Raises:
        RunBusyError: If another process is tuning with this file.
        FileFormatError: If the file is damaged.
    """
    store = RunFolder(path.parent, path.name, lock_name=f".{path.name}.lock")
    with store.lock():
        yield Trials(store, workers=workers, data_dir=data_dir)


def _attempt(
    key: str, trial: Trial, data_dir: str | Path | None, parent: int
) -> tuple[str, Outcome]:
    if os.getpid() != parent:
        leave_with(parent)
    return key, assess(trial, data_dir)


def _outcomes(lines: Sequence[dict[str, Any]], path: Path) -> dict[str, Outcome]:
    try:
        return {
            line["key"]: Outcome(
                float(line["accuracy"]), float("inf") if line["nll"] is None else float(line["nll"])
            )
            for line in lines
        }
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: not a file of trials; delete it") from error
