"""Runs on disk: one folder for each, whole at any moment, going on after any interruption.

``<out>/<protocol>/<method>[-<acquisition>]/seed-<s>/`` holds

- ``run.toml``: all settings as resolved, the versions and the machine that made it, and under
  ``earlier`` those that made the first rounds, if they were others;
- ``rounds.jsonl``: a line for each round;
- ``asked.npz``: the images that it asked for first, for the report;
- ``checkpoint/``: the learner after the last round.

Nothing else is state. All chance is derived from the seed and the number of the round, so that a
round depends only on the lines before it (and on the checkpoint, where networks are trained on).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import threadpoolctl
import tomli_w
import torch

from spinal.data import Dataset, Pool, Splits, load_dataset, make_splits
from spinal.encoders import encode_dataset, load_encoder
from spinal.errors import FileFormatError, SpinalError
from spinal.experiments.asked import keep_asked
from spinal.experiments.metrics import evaluate, pack
from spinal.experiments.origin import origin
from spinal.experiments.protocol import Protocol, tomllib
from spinal.files import write_text
from spinal.learner import ActiveLearner
from spinal.methods import find_method
from spinal.posteriors import SPN, MCDropout

#: Tables and keys of ``run.toml`` that do not decide what its rounds are.
_NO_SETTINGS = (
    "earlier", "machine", "versions", "protocol.paper", "protocol.rounds", "protocol.title"
)  # fmt: skip


class RunBusyError(SpinalError):
    """Another process is at work on the same run."""


@dataclass(frozen=True)
class Run:
    """One protocol, method, acquisition function and seed, in its folder under ``out``."""

    protocol: Protocol
    method: str
    acquisition: str
    seed: int
    out: Path

    @property
    def name(self) -> str:
        """The method, with the acquisition function where there is a choice."""
        chosen = len(find_method(self.method).choices) > 1
        return f"{self.method}-{self.acquisition}" if chosen else self.method

    @property
    def title(self) -> str:
        """What to call it among others."""
        return f"{self.protocol.name} {self.name} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.out / self.protocol.name / self.name / f"seed-{self.seed}"

    def rounds(self) -> list[dict[str, Any]]:
        """The rounds that are finished."""
        return read_rounds(self.folder / "rounds.jsonl")

    @property
    def is_finished(self) -> bool:
        """Whether all rounds of the protocol are done."""
        return len(self.rounds()) > self.protocol.rounds

    def settings(self) -> dict[str, Any]:
        """All that decides what the run does."""
        return {
            "method": self.method,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "protocol": self.protocol.to_mapping(),
        }


def execute(
    run: Run,
    data_dir: str | Path | None = None,
    *,
    dataset: Dataset | None = None,
    wait: float = 0.0,
) -> None:
    """Do the rounds of a run that are not done yet.

    Args:
        run: what to do, and where to keep it.
        data_dir: where the dataset is looked for first.
        dataset: instead, the dataset itself.
        wait: seconds to wait for another process that is at it.

    Raises:
        RunBusyError: if it still is.
        SpinalError: if the folder holds a run with other settings.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(run.folder / ".lock")
    try:
        lock.acquire(timeout=wait)
    except filelock.Timeout as error:
        raise RunBusyError(f"{run.folder}: another process is working on this run") from error
    try:
        # One thread: the same sums in the same order, however many runs share the machine.
        torch.set_num_threads(1)
        with threadpoolctl.threadpool_limits(1):
            _check_settings(run)
            if not run.is_finished:
                _write_settings(run)
                if dataset is None:
                    dataset = load_dataset(run.protocol.dataset, data_dir)
                _do_rounds(run, dataset)
    finally:
        lock.release()


def _seen(dataset: Dataset, protocol: Protocol) -> Dataset:
    """The dataset of a protocol, seen through its backbone if it names one."""
    if protocol.network.is_backbone:
        return encode_dataset(dataset, load_encoder(protocol.network.name))
    return dataset


def _do_rounds(run: Run, published: Dataset) -> None:
    protocol = run.protocol
    dataset = _seen(published, protocol)
    splits = _splits(run, dataset)
    test_images, test_labels = dataset.test_images[splits.test], dataset.test_labels[splits.test]
    learner, done = _learner(run, dataset, splits)
    for number in range(len(done), protocol.rounds + 1):
        learner.fit()
        known = learner.pool.labels
        line: dict[str, Any] = {"round": number, "labels": len(known)}
        line["class_counts"] = np.bincount(known, minlength=len(dataset.classes)).tolist()
        line["fitted_share"] = learner.fitted_share()
        log_probs = learner.predict_log_proba(test_images)
        line |= evaluate(log_probs["method"], test_labels)
        by_network = evaluate(log_probs["network"], test_labels)
        line |= {f"network_{name}": value for name, value in by_network.items()}
        line["right"] = pack(log_probs["method"].argmax(1) == test_labels)
        picks = np.empty(0, np.int64)
        if number < protocol.rounds:
            picks = learner.ask(protocol.batch)
            if learner.assessment is not None:
                line["picked"] = learner.assessment.summary()
        line["seconds"] = {phase: round(s, 4) for phase, s in learner.seconds.items()}
        line["picks"] = picks.tolist()
        learner.tell(picks, dataset.train_labels[picks])
        done.append(line)
        learner.save(run.folder / "checkpoint")
        keep_asked(run.folder, published, done)
        text = "".join(json.dumps(entry) + "\n" for entry in done)
        write_text(run.folder / "rounds.jsonl", text)


def _learner(
    run: Run, dataset: Dataset, splits: Splits
) -> tuple[ActiveLearner, list[dict[str, Any]]]:
    """The learner as it was after the last finished round, and the lines of those rounds."""
    protocol = run.protocol
    done = run.rounds()
    pool = Pool(dataset.train_images, dataset.classes, members=splits.members)
    posterior = _posterior_settings(run)
    validation = None
    if protocol.network.early_stopping:
        held = splits.validation
        validation = dataset.train_images[held], dataset.train_labels[held]
    checkpoint = run.folder / "checkpoint"
    if protocol.network.retrain == "continue" and done:
        learner = ActiveLearner.load(checkpoint, pool, posterior=posterior, validation=validation)
        if learner.rounds == len(done):
            if not done[-1]["picks"]:  # the end of a run that was to be shorter
                done[-1]["picks"] = learner.ask(protocol.batch).tolist()
                learner.tell(done[-1]["picks"], dataset.train_labels[done[-1]["picks"]])
            return learner, done
        # Killed after the checkpoint and before the line, the round is done again from its start;
        # that needs the checkpoint before it, which is gone: begin anew, to the same end.
        done = []
        pool = Pool(dataset.train_images, dataset.classes, members=splits.members)
    learner = ActiveLearner(
        pool,
        protocol.network.architecture,
        run.method,
        run.acquisition,
        run.seed,
        posterior=posterior,
        validation=validation,
        width=protocol.network.width,
        training=protocol.training(),
        retrain=protocol.network.retrain,
        candidates=protocol.candidates,
        labellings=protocol.labellings,
    )
    learner.tell(splits.initial, dataset.train_labels[splits.initial])
    if done and not done[-1]["picks"]:  # the end of a run that was to be shorter: pick now
        done.pop()
    for line in done:
        learner.tell(line["picks"], dataset.train_labels[line["picks"]])
    learner.rounds = len(done)
    return learner, done


def _posterior_settings(run: Run) -> dict[str, Any]:
    """What the protocol says of the posterior that the method takes."""
    protocol, kind = run.protocol, find_method(run.method).posterior
    if kind is SPN:
        circuit = protocol.circuit
        return {
            "recipe": protocol.recipe(), "grid": circuit.grid, "masks": circuit.masks,
            "dropout": circuit.dropout, "sharpness": circuit.sharpness,
        }  # fmt: skip
    if kind is MCDropout and protocol.samples is not None:
        return {"samples": protocol.samples}
    return {}


def _splits(run: Run, dataset: Dataset) -> Splits:
    """The splits of a seed: the same for every method, kept beside the runs."""
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


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """The lines of a ``rounds.jsonl``; none if it is not there."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except ValueError as error:
        raise FileFormatError(
            f"{path}: damaged ({error}); delete it to start the run anew"
        ) from error


def _kept_settings(run: Run) -> dict[str, Any]:
    path = run.folder / "run.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise FileFormatError(f"{path}: damaged ({error}); delete it") from error


def _check_settings(run: Run) -> None:
    """Make sure that the folder, if it holds a run, was made with the same settings."""
    kept = _kept_settings(run)
    different = _differences(kept, run.settings()) if kept else []
    if different:
        raise SpinalError(
            f"{run.folder} was made with other settings ({'; '.join(different)}): "
            "choose another --out, or delete it"
        )


def _write_settings(run: Run) -> None:
    """Keep the settings, and what makes the rounds from here on; what made the others stays."""
    kept, now, done = _kept_settings(run), origin(), len(run.rounds())
    earlier = kept.get("earlier", [])
    before = {name: kept.get(name, {}) for name in now}
    if done and before != now:
        earlier = [*earlier, {"rounds": done, **before}]
    settings = run.settings() | ({"earlier": earlier} if earlier else {}) | now
    write_text(run.folder / "run.toml", tomli_w.dumps(settings))


def _differences(kept: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    """Which settings differ; more rounds than before are no difference, the rest is the same."""
    found = []
    for key in sorted(kept.keys() | wanted.keys()):
        where = f"{prefix}{key}"
        if where in _NO_SETTINGS:
            continue
        old, new = kept.get(key), wanted.get(key)
        if isinstance(old, dict) or isinstance(new, dict):
            found += _differences(old or {}, new or {}, f"{where}.")
        elif old != new:
            found.append(f"{where} was {old!r}, is {new!r}")
    return found
