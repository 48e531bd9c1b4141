"""Small runs, made up: folders as `spinal run` writes them, without training anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from spinal.data import load_dataset, make_splits
from spinal.experiments import Protocol
from spinal.experiments.asked import keep_asked
from spinal.experiments.metrics import evaluate, pack

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
    lines = []
    for number in range(protocol.rounds + 1 if rounds is None else rounds + 1):
        labels = protocol.initial + number * protocol.batch
        rng = np.random.default_rng([seed, number, sum(method.encode())])
        lines.append(_line(rng, protocol, number, labels, skill, old))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (path / "rounds.jsonl").write_text(text)
    if not old:
        settings = {
            "method": method, "seed": seed, "protocol": protocol.to_mapping(),
            "versions": {"python": "3.11"}, "machine": {"system": "Linux"},
        }  # fmt: skip
        (path / "run.toml").write_text(tomli_w.dumps(settings))
        keep_asked(path, load_dataset("digits"), lines)
        splits = path.parents[1] / "splits" / f"{path.name}.json"
        splits.parent.mkdir(exist_ok=True)
        sizes = {"pool": 1000, "validation": 0, "initial": protocol.initial, "test": protocol.test}
        make_splits(1000 + protocol.initial, TEST_POINTS, **sizes, seed=seed).save(splits)


def _line(
    rng: np.random.Generator, protocol: Protocol, number: int, labels: int, skill: float, old: bool
) -> dict[str, Any]:
    n = protocol.test or TEST_POINTS
    truth = np.arange(n) % CLASSES
    logits = rng.normal(size=(n, CLASSES))
    logits[np.arange(n), truth] += skill * 1.1 * np.log(labels / 4)
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    measured = evaluate(log_probs, truth)
    line: dict[str, Any] = {"round": number, "labels": labels}
    line |= measured | {f"network_{name}": value for name, value in measured.items()}
    line["class_counts"] = rng.multinomial(labels, np.full(CLASSES, 1 / CLASSES)).tolist()
    line["right"] = pack(log_probs.argmax(1) == truth)
    line["seconds"] = {"network": 2.0, "features": 0.5, "posterior": skill, "choice": 0.25}
    last = number == protocol.rounds
    line["picks"] = [] if last else rng.choice(1000, protocol.batch, replace=False).tolist()
    if old:
        return {k: v for k, v in line.items() if isinstance(v, int | float) or k == "seconds"}
    return line


def write_runs(
    folder: Path, protocol: Protocol, skills: dict[str, float], seeds: Sequence[int], **rest: Any
) -> Path:
    """Runs of several methods, each with its skill; returns ``folder``."""
    for method, skill in skills.items():
        for seed in seeds:
            write_run(folder, protocol, method, seed, skill, **rest)
    return folder
