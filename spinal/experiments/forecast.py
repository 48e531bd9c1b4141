"""When a grid will be done: from the seconds that rounds have taken so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from spinal.experiments.runs import Run
from spinal.runs import RoundRecord

Lines = list[RoundRecord]


def seconds_left(
    left: Iterable[Run],
    rounds: Sequence[tuple[Run, Lines]],
    here: Lines,
    elapsed: float,
    workers: int,
) -> float | None:
    """The seconds until the last run is done; None as long as nothing is known.

    A round that is to come takes as long as the same round took with another seed, or else as the
    last known one of its method, or else as the mean of all. What rounds do not count themselves,
    such as evaluation, is in the ratio of the time that workers had to the time they counted.

    Args:
        left: runs that have not ended.
        rounds: all runs, with the rounds that are done.
        here: the rounds that were done in this grid's time.
        elapsed: this grid's time, in seconds.
        workers: how many runs are at work at a time.
    """
    counted = sum(_seconds(line) for line in here)
    if not counted:
        return None
    known: dict[tuple[str, str], dict[int, float]] = {}
    for run, lines in rounds:
        took = known.setdefault((run.protocol.name, run.name), {})
        took |= {i: _seconds(line) for i, line in enumerate(lines)}
    mean = fmean(_seconds(line) for _, lines in rounds for line in lines)
    done = {run.folder: len(lines) for run, lines in rounds}
    needs = []
    for run in left:
        took = known[run.protocol.name, run.name]
        otherwise = took[max(took)] if took else mean
        to_come = range(done[run.folder], run.protocol.rounds + 1)
        needs.append(sum(took.get(i, otherwise) for i in to_come))
    at_best = max(sum(needs) / workers, max(needs, default=0.0))
    return at_best * elapsed * workers / counted


def _seconds(record: RoundRecord) -> float:
    return sum(record.seconds.values())
