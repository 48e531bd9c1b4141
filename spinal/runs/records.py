"""The record of a round, a line of ``rounds.jsonl``, for writing and reading."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.runs.lines import damaged_line, read_lines
from spinal.runs.metrics import unpack

#: The methods that a measurement of uncertainty compares: the paper's three, and deep ensembles.
UNCERTAINTY_METHODS = ("spn-cnn", "mc-dropout", "ensemble", "deterministic")


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """The measurements of a round of active learning, and the points that it chose for the next.

    A field is None if it does not apply, or if an earlier version did not store it.

    Attributes:
        round: Number of the round, from 0.
        labels: Number of labelled points that the round was trained with.
        class_counts: Labelled points of each class, ``[C]``.
        fitted_share: Share of the labelled points that the network classifies correctly, 0 to 1.
        accuracy: Share of the test points that the method's posterior classifies correctly, 0 to 1.
        nll: Mean negative log-likelihood of the method's posterior on the test points, in nats.
        ece: Expected calibration error of the method's posterior, 0 to 1, from 15 bins.
        reliability: Test points in bins of confidence (`spinal.runs.metrics.reliability`): for each
            bin ``count`` and ``right`` in points, ``confidence`` as a sum of probabilities.
        network_accuracy: Like ``accuracy``, for the softmax of the network.
        network_nll: Like ``nll``, for the softmax of the network, in nats.
        network_ece: Like ``ece``, for the softmax of the network.
        network_reliability: Like ``reliability``, for the softmax of the network.
        logistic_accuracy: Like ``accuracy``, for logistic regression on the same labels and
            features.
        logistic_nll: Like ``nll``, for that regression, in nats.
        logistic_ece: Like ``ece``, for that regression.
        shares: Weight of each classifier in the method's posterior, by its name in
            `spinal.methods.CLASSIFIERS`; None if it is not a mixture.
        learned_from: ``pool`` if the method's posterior also learned from unlabelled points,
            otherwise ``labels``.
        advice: How many predictions another batch would change (`spinal.learner.advice`): ``more``
            labels, the share that ``changes`` with an interval from ``low`` to ``high``, and
            ``kappa``; None in the first two rounds.
        right: Which test points the method's posterior classifies correctly, one bit per point, in
            base64.
        picked: Entropy of the chosen points, in nats, and their rank among the candidates, 0 to 1;
            None if the method does not assess points, and in the last round.
        seconds: Wall-clock seconds of each phase, such as ``network`` and ``posterior``.
        picks: Indices into the training set of the points to label next, best first. Empty in the
            last round.
    """

    round: int
    labels: int
    class_counts: Sequence[int] | None = None
    fitted_share: float | None = None
    accuracy: float
    nll: float
    ece: float
    reliability: Mapping[str, Sequence[float]] | None = None
    network_accuracy: float
    network_nll: float
    network_ece: float
    network_reliability: Mapping[str, Sequence[float]] | None = None
    logistic_accuracy: float | None = None
    logistic_nll: float | None = None
    logistic_ece: float | None = None
    shares: Mapping[str, float] | None = None
    learned_from: str | None = None
    advice: Mapping[str, float] | None = None
    right: str | None = None
    picked: Mapping[str, Any] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    picks: Sequence[int] = ()

    def to_line(self) -> dict[str, Any]:
        """The object to write as a line, without fields that are None."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> RoundRecord:
        """The record that a line holds.

        Raises:
            ValueError: If a field is unknown or missing, or not a number where one is expected.
        """
        unknown, missing = line.keys() - _FIELDS.keys(), _NUMBERS - line.keys()
        if unknown or missing:
            raise ValueError(f"unknown {sorted(unknown)}, missing {sorted(missing)}")
        wrong = [name for name in sorted(_NUMBERS) if not isinstance(line[name], int | float)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not a number")
        return cls(**line)

    def numbers(self) -> dict[str, int | float]:
        """The fields that are single numbers."""
        return {k: v for k, v in self.to_line().items() if isinstance(v, int | float)}

    def right_points(self) -> NDArray[np.bool_] | None:
        """Which of the N test points were classified correctly, ``[N]``; None if not stored."""
        if self.right is None or self.reliability is None:
            return None
        return unpack(self.right, int(sum(self.reliability["count"])))


_FIELDS = {f.name: f for f in dataclasses.fields(RoundRecord)}
_NUMBERS = {name for name, f in _FIELDS.items() if f.type in ("int", "float")}


def read_rounds(path: Path) -> list[RoundRecord]:
    """Read the rounds of a ``rounds.jsonl``; empty if the file does not exist.

    Raises:
        FileFormatError: If a line is damaged, or not the record of its round.
    """
    rounds = []
    for number, line in enumerate(read_lines(path)):
        try:
            rounds.append(RoundRecord.from_line(line))
        except ValueError as error:
            raise damaged_line(path, number + 1, error) from error
        if rounds[-1].round != number:
            raise damaged_line(path, number + 1, f"round {rounds[-1].round} instead of {number}")
    return rounds
