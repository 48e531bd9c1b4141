"""Runs of active learning: resumable after any interruption, to the same result.

``<out>/<protocol>/<method>[-<acquisition>]/seed-<s>/`` holds

- ``run.toml``: all resolved settings, the versions and the machine, and under ``earlier`` the
  versions and machines of earlier rounds, if they differ;
- ``rounds.jsonl``: a `spinal.runs.RoundRecord` for each round;
- ``asked.npz``: the first images that it asked for, for reports;
- ``checkpoint/``: the learner after the last round.

There is no other state. All random numbers are derived from the seed and the number of the round,
so a round depends only on earlier rounds (and on the checkpoint, if training continues from it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import filelock
import numpy as np
from numpy.typing import NDArray

from spinal.data import Dataset, Pool, Splits, iter_batches, load_dataset, make_splits
from spinal.encoders import encode_dataset, load_encoder
from spinal.experiments.protocol import Protocol
from spinal.experiments.tables import unused_settings
from spinal.files import existing_folder
from spinal.learner import ActiveLearner, Callback
from spinal.learner.advice import History
from spinal.learner.storage import HISTORY
from spinal.methods import find_method
from spinal.posteriors import Logistic, View
from spinal.registry import is_own
from spinal.runs import RoundRecord, RunFolder, read_rounds
from spinal.runs.asked import keep_asked
from spinal.runs.metrics import evaluate, pack
from spinal.threads import single_thread

#: Settings that may change when a run is resumed: its rounds do not depend on them. Settings of
#: other methods may change, too.
_FREE = ("protocol.paper", "protocol.rounds", "protocol.title")


@dataclass(frozen=True)
class Run:
    """One protocol, method, acquisition function and seed, in its folder under ``out``.

    Attributes:
        fingerprint: `Dataset.fingerprint` of the user's own data; None for datasets with a name,
            and before the data are read.
    """

    protocol: Protocol
    method: str
    acquisition: str
    seed: int
    out: Path
    fingerprint: str | None = None

    @property
    def name(self) -> str:
        """The method, with the acquisition function if there is a choice."""
        chosen = len(find_method(self.method).choices) > 1
        name = f"{self.method}-{self.acquisition}" if chosen else self.method
        return re.sub(r"[^\w.-]+", "-", name)  # so that module:name can be the name of a folder

    @property
    def title(self) -> str:
        """Protocol, name and seed, for messages."""
        return f"{self.protocol.name} {self.name} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.out / self.protocol.name / self.name / f"seed-{self.seed}"

    @property
    def store(self) -> RunFolder:
        """The folder, with its settings and records."""
        unused = unused_settings(find_method(self.method).posterior, self.acquisition)
        free = (*_FREE, *(f"protocol.{key}" for key in unused))
        return RunFolder(self.folder, settings=self.settings(), free=free)

    def rounds(self) -> list[RoundRecord]:
        """The finished rounds."""
        return read_rounds(self.folder / "rounds.jsonl")

    @property
    def is_finished(self) -> bool:
        """Whether all rounds of the protocol are done."""
        return len(self.rounds()) > self.protocol.rounds

    def settings(self) -> dict[str, Any]:
        """All settings that determine the results."""
        return {
            "method": self.method,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "protocol": self.protocol.to_mapping(),
            **({} if self.fingerprint is None else {"fingerprint": self.fingerprint}),
        }


#: Makes the callbacks of a run, in the process that executes it.
MakeCallbacks = Callable[[Run], Sequence[Callback]]


def execute(
    run: Run,
    data_dir: str | Path | None = None,
    *,
    dataset: Dataset | None = None,
    wait: float = 0.0,
    callbacks: MakeCallbacks | None = None,
) -> None:
    """Execute the rounds of a run that are not finished.

    Args:
        run: The run.
        data_dir: The first folder to search for the dataset.
        dataset: The dataset itself; ``data_dir`` is not used then.
        wait: Seconds to wait for another process to release the run.
        callbacks: See `spinal.experiments.run_grid`.

    Raises:
        RunBusyError: If another process still holds the lock of the run.
        SpinalError: If the folder holds a run with other settings.
    """
    p = run.protocol
    if p.dataset_is_own and run.fingerprint is None:
        dataset = dataset or load_dataset(p.dataset, data_dir, data=p.data)
        run = replace(run, fingerprint=dataset.fingerprint())
    store = run.store
    with store.lock(wait), single_thread():
        store.check_settings()
        if not run.is_finished:
            store.write_settings()
            told = callbacks(run) if callbacks is not None else ()
            _do_rounds(run, dataset or load_dataset(p.dataset, data_dir), told)


def _seen(dataset: Dataset, protocol: Protocol) -> Dataset:
    """The dataset of a protocol, encoded if the protocol names an encoder."""
    if protocol.network.is_encoder:
        return encode_dataset(dataset, load_encoder(protocol.network.name))
    return dataset


def _do_rounds(run: Run, published: Dataset, callbacks: Sequence[Callback]) -> None:
    """Execute the missing rounds; after each, the folder is consistent."""
    protocol = run.protocol
    dataset = _seen(published, protocol)
    splits = _splits(run, dataset)
    learner, done = _learner(run, dataset, splits)
    learner.callbacks = tuple(callbacks)
    for number in range(len(done), protocol.rounds + 1):
        record = _do_round(learner, number, dataset, splits, protocol)
        for callback in callbacks:
            callback.on_measured(learner, record.numbers())
        indices = np.asarray(record.picks, np.int64)
        learner.tell(indices, dataset.train_labels[indices])
        done.append(record)
        learner.save(run.folder / "checkpoint")
        keep_asked(run.folder, published, done)
        run.store.write([entry.to_line() for entry in done])


def _do_round(
    learner: ActiveLearner, number: int, dataset: Dataset, splits: Splits, protocol: Protocol
) -> RoundRecord:
    """Train, evaluate on the test points, and choose points, except in the last round."""
    learner.fit()
    labels = learner.pool.labels
    fitted_share = learner.fitted_share()
    test_labels = dataset.test_labels[splits.test]
    seen = learner.view(dataset.test_images[splits.test])
    log_probs = learner.predict_log_proba(seen)
    by_network = evaluate(learner.predict_log_proba(seen, by="network"), test_labels)
    by_logistic = _by_logistic(learner, seen, test_labels)
    shares, advice = learner.posterior.shares, learner.advice(protocol.batch)
    indices, choice = np.empty(0, np.int64), None
    if number < protocol.rounds:
        indices = learner.ask(protocol.batch)
        if learner.choice is not None:
            choice = learner.choice.summary()
    return RoundRecord(
        round=number,
        labels=len(labels),
        class_counts=np.bincount(labels, minlength=len(dataset.classes)).tolist(),
        fitted_share=fitted_share,
        **evaluate(log_probs, test_labels),
        **{f"network_{name}": value for name, value in by_network.items()},
        **by_logistic,
        shares=shares and _rounded(shares),
        learned_from=learner.learned_from,
        advice=None if advice is None else _rounded(asdict(advice)),
        right=pack(log_probs.argmax(1) == test_labels),
        picked=choice,
        seconds=_rounded(learner.seconds),
        picks=indices.tolist(),
    )


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def _by_logistic(learner: ActiveLearner, seen: View, labels: NDArray) -> dict[str, Any]:
    """Measurements of logistic regression, as a baseline.

    Empty if features are missing.
    """
    if learner.network.preprocess.fills_missing:
        for points in (seen.points, learner.pool.points):
            batches = iter_batches(points, np.arange(len(points)))
            if any(np.isnan(batch).any() for batch in batches):
                return {}
    fitted = learner.posterior
    if not isinstance(fitted, Logistic):
        fitted = learner.fit_beside("logistic")
    values = evaluate(fitted.predict(seen).numpy(), labels)
    return {f"logistic_{name}": values[name] for name in ("accuracy", "nll", "ece")}


def _learner(run: Run, dataset: Dataset, splits: Splits) -> tuple[ActiveLearner, list[RoundRecord]]:
    """The learner as it was after the last finished round, and the records of those rounds."""
    protocol = run.protocol
    done = run.rounds()
    pool = Pool(dataset.train_images, dataset.classes, members=splits.members)
    validation = None
    if protocol.network.early_stopping:
        indices = splits.validation
        validation = dataset.train_images[indices], dataset.train_labels[indices]
    checkpoint = existing_folder(run.folder / "checkpoint")
    reserve = _posterior_settings(run).get("reserve")
    if (protocol.network.retrain == "continue" or reserve) and not checkpoint.exists():
        done = []  # such as a run that was copied without it: start again, to the same results
    if protocol.network.retrain == "continue" and done:
        learner = ActiveLearner.load(checkpoint, pool, **_own_parts(run), validation=validation)
        if learner.rounds == len(done):
            if not done[-1].picks:  # it was the last round of a shorter run
                done[-1] = replace(done[-1], picks=learner.ask(protocol.batch).tolist())
                learner.tell(done[-1].picks, dataset.train_labels[done[-1].picks])
            return learner, done
        # The process was killed after writing the checkpoint and before writing the line. Repeating
        # that round needs the previous checkpoint, which is gone: start again, to the same results.
        done = []
        pool = Pool(dataset.train_images, dataset.classes, members=splits.members)
    learner = ActiveLearner(
        pool,
        (protocol.network.architecture, protocol.network.options),
        run.method,
        (run.acquisition, protocol.acquisition_settings(run.acquisition)),
        run.seed,
        posterior=_posterior_settings(run),
        validation=validation,
        training=protocol.training(),
        retrain=protocol.network.retrain,
        candidates=protocol.candidates,
        learn_from=protocol.learn_from,
    )
    learner.tell(splits.initial, dataset.train_labels[splits.initial])
    if done and not done[-1].picks:  # it was the last round of a shorter run: choose now
        done.pop()
    for record in done:
        learner.tell(record.picks, dataset.train_labels[record.picks])
    learner.rounds = len(done)
    if done and (checkpoint / HISTORY).exists():
        learner.history = History.load(checkpoint / HISTORY)
        learner.posterior.load_for_fit(checkpoint)
    return learner, done


def _own_parts(run: Run) -> dict[str, Any]:
    """The user's own parts, which are not saved in a checkpoint."""
    posterior = find_method(run.method).posterior
    return {
        "posterior": posterior if is_own("posterior", posterior) else None,
        "acquisition": run.acquisition if is_own("acquisition", run.acquisition) else None,
    }


def _posterior_settings(run: Run) -> dict[str, Any]:
    """The protocol's settings for the posterior of the method."""
    return run.protocol.posterior_settings(find_method(run.method).posterior)


def _splits(run: Run, dataset: Dataset) -> Splits:
    """The splits of a seed, the same for every method, stored with the runs."""
    p = run.protocol
    splits = make_splits(
        len(dataset.train_labels), len(dataset.test_labels), pool=p.pool, validation=p.validation,
        initial=p.initial, test=p.test, seed=run.seed, stratified=p.stratified,
        labels=dataset.train_labels if p.stratified else None,
    )  # fmt: skip
    path = run.out / p.name / "splits" / f"seed-{run.seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):  # runs of the same seed start together
        if not path.exists():
            splits.save(path)
    return splits
