"""Small runs, made up: folders as `spinal run` writes them, without training anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from spinal.data import load_dataset, make_splits
from spinal.experiments import Protocol
from spinal.runs import RoundRecord, write_lines
from spinal.runs.asked import keep_asked
from spinal.runs.metrics import evaluate, pack

CLASSES, TEST_POINTS = 10, 1000


def write_run(
    folder: Path,
    protocol: Protocol,
    method: str,
    seed: int,
    skill: float,
    *,
    old: bool = False,
    rounds: int | None = None,
) -> None:
    """One run, whose accuracy grows with the labels and with ``skill``.

    Args:
        folder: of all runs.
        protocol: whose budgets and test set it has.
        method: the name of its folder.
        seed: of its predictions.
        skill: how fast it learns; 1 is plain.
        old: whether to leave out what runs did not always store: all but numbers.
        rounds: how many are done; all, unless given.
    """
    path = folder / protocol.name / method / f"seed-{seed}"
    path.mkdir(parents=True)
    records = []
    for number in range(protocol.rounds + 1 if rounds is None else rounds + 1):
        labels = protocol.initial + number * protocol.batch
        rng = np.random.default_rng([seed, number, sum(method.encode())])
        records.append(_record(rng, protocol, number, labels, skill, old))
    write_lines(path / "rounds.jsonl", [record.to_line() for record in records])
    if not old:
        settings = {
            "method": method, "seed": seed, "protocol": protocol.to_mapping(),
            "versions": {"python": "3.11"}, "machine": {"system": "Linux"},
        }  # fmt: skip
        (path / "run.toml").write_text(tomli_w.dumps(settings))
        keep_asked(path, load_dataset("digits"), records)
        splits = path.parents[1] / "splits" / f"{path.name}.json"
        splits.parent.mkdir(exist_ok=True)
        sizes = {"pool": 1000, "validation": 0, "initial": protocol.initial, "test": protocol.test}
        make_splits(1000 + protocol.initial, TEST_POINTS, **sizes, seed=seed).save(splits)


def _record(
    rng: np.random.Generator, protocol: Protocol, number: int, labels: int, skill: float, old: bool
) -> RoundRecord:
    n = protocol.test or TEST_POINTS
    truth = np.arange(n) % CLASSES
    logits = rng.normal(size=(n, CLASSES))
    logits[np.arange(n), truth] += skill * 1.1 * np.log(labels / 4)
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    measured = evaluate(log_probs, truth)
    noisy = logits + rng.normal(size=logits.shape)  # the network is a little worse
    by_network = evaluate(noisy - np.log(np.exp(noisy).sum(1, keepdims=True)), truth)
    last = number == protocol.rounds
    record = RoundRecord(
        round=number,
        labels=labels,
        **measured,
        **{f"network_{name}": value for name, value in by_network.items()},
        class_counts=rng.multinomial(labels, np.full(CLASSES, 1 / CLASSES)).tolist(),
        advice={
            "labels": labels,
            "more": protocol.batch,
            "changes": skill / labels,
            "low": 0.5 * skill / labels,
            "high": 2 * skill / labels,
            "kappa": 0.9,
        },
        right=pack(log_probs.argmax(1) == truth),
        seconds={"network": 2.0, "features": 0.5, "posterior": skill, "choice": 0.25},
        picks=[] if last else rng.choice(1000, protocol.batch, replace=False).tolist(),
    )
    if old:
        seconds = {"seconds": record.seconds}
        return RoundRecord.from_line(record.numbers() | seconds)
    return record


def write_runs(
    folder: Path, protocol: Protocol, skills: dict[str, float], seeds: Sequence[int], **rest: Any
) -> Path:
    """Runs of several methods, each with its skill; returns ``folder``."""
    for method, skill in skills.items():
        for seed in seeds:
            write_run(folder, protocol, method, seed, skill, **rest)
    return folder
