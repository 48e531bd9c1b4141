"""Rounds, made up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spinal.runs import RoundRecord, write_lines


def made_round(number: int, labels: int, accuracy: float, **more: Any) -> RoundRecord:
    """A round of which only this is known; the network is a little worse than the method."""
    return RoundRecord(
        round=number, labels=labels, accuracy=accuracy, nll=1 - accuracy, ece=0.1,
        network_accuracy=accuracy - 0.01, network_nll=1.0, network_ece=0.2, **more,
    )  # fmt: skip


def write_rounds(folder: Path, rounds: Iterable[RoundRecord]) -> None:
    """Write rounds into the folder of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "rounds.jsonl", [record.to_line() for record in rounds])
