"""Checks that the contenders compute the same results, before anything is timed."""

from __future__ import annotations

import sys

import numpy as np
from acquisition_cases import (
    BAAL,
    MODAL,
    REDUX,
    SKACTIVEML,
    SPINAL,
    USUAL,
    WHOLE,
    badge,
    batchbald,
    herding,
    k_center,
    mc_dropout,
    measure,
)
from circuits import PEERS

sys.path.insert(0, str(PEERS))
import acquisition_data as data


def assert_parity(pythons: dict[str, str], wanted: set[str]) -> dict[str, dict[str, float]]:
    """How far the peers are from spinal in each of the cases that are wanted."""
    checks = {
        "batchbald": batchbald_parity, "mc_dropout": mc_dropout_parity,
        "k_center": k_center_parity, "badge": badge_parity, "herding": herding_parity,
    }  # fmt: skip
    return {what: check(pythons) for what, check in checks.items() if what in wanted}


def mc_dropout_parity(pythons: dict[str, str]) -> dict[str, float]:
    """Masks differ, so that scores agree up to chance; what is kept is 1 - their correlation."""
    case = mc_dropout(200, 100)
    ours = np.asarray(measure(pythons[SPINAL], SPINAL, case)["bald"])
    distances = {}
    for name in (BAAL, MODAL):
        if name in pythons:
            theirs = np.asarray(measure(pythons[name], name, case)["bald"])
            distances[name] = float(1 - np.corrcoef(ours, theirs)[0, 1])
            assert distances[name] < 0.03, f"{name} scores other points high"
            ratio = theirs.mean() / ours.mean()
            assert 0.95 < ratio < 1.05, f"scores by {name} are {ratio:.2f} x as high"
    return distances


def k_center_parity(pythons: dict[str, str]) -> dict[str, float]:
    """The same picks; what is kept is the share that differs."""
    case = k_center(2_000, 64, 50)
    ours = measure(pythons[SPINAL], SPINAL, case)["picks"]
    if SKACTIVEML not in pythons:
        return {}
    assert measure(pythons[SKACTIVEML], SKACTIVEML, case)["picks"] == ours
    return {SKACTIVEML: 0.0}


def herding_parity(pythons: dict[str, str]) -> dict[str, float]:
    """The same picks; what is kept is the share that differs."""
    case = herding(2_000, 64, 50, sample=2_000)
    ours = measure(pythons[SPINAL], SPINAL, case)["picks"]
    assert measure(pythons[WHOLE], WHOLE, case)["picks"] == ours
    return {WHOLE: 0.0}


def badge_parity(pythons: dict[str, str]) -> dict[str, float]:
    """The same first pick, and gradients covered no worse; kept: by how much theirs are worse.

    The peer counts the origin among what is picked, so that its distribution is another one.
    """
    if SKACTIVEML not in pythons:
        return {}
    case = badge(2_000, 32, 50)
    probs = np.exp(data.log_probs(2_000, 1, 10, USUAL)[:, 0])
    error = probs - np.eye(10)[probs.argmax(1)]
    gradients = (error[:, :, None] * data.vectors(2_000, 32)[:, None]).reshape(2_000, -1)
    left, first = {}, set()
    for name in (SPINAL, SKACTIVEML):
        picks = measure(pythons[name], name, case)["picks"]
        first.add(picks[0])
        away = [np.square(gradients - gradients[pick]).sum(1) for pick in picks]
        left[name] = float(np.min(away, 0).mean())
    assert len(first) == 1, "the first picks differ"
    assert left[SPINAL] < 1.05 * left[SKACTIVEML], f"mean squared distances left: {left}"
    return {SKACTIVEML: left[SKACTIVEML] / left[SPINAL] - 1}


def batchbald_parity(pythons: dict[str, str]) -> dict[str, float]:
    """The same batch and scores as the peers where all are exact; the greatest differences."""
    case = batchbald(300, 12, 4, labellings=100_000)
    ours = measure(pythons[SPINAL], SPINAL, case)
    differences = {}
    for name in (REDUX, SKACTIVEML):
        if name in pythons:
            theirs = measure(pythons[name], name, case)
            difference = np.abs(np.subtract(ours["scores"], theirs["scores"])).max()
            assert ours["picks"] == theirs["picks"], f"{name} picks another batch"
            assert difference < 1e-4, f"{name} differs by {difference} in scores"
            differences[name] = float(difference)
    return differences
