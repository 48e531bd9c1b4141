"""Forecast of the end of a grid, from the seconds that rounds have taken so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from spinal.experiments.runs import Run
from spinal.runs import RoundRecord

Lines = list[RoundRecord]


def seconds_left(
    left: Iterable[Run],
    rounds: Sequence[tuple[Run, Lines]],
    new_rounds: Lines,
    elapsed: float,
    workers: int,
) -> float | None:
    """The seconds until the last run is done; None if no round is done yet.

    A future round is assumed to take as long as the same round with another seed. If that is
    unknown, the last known round of its method counts, then the mean of all rounds. Time that
    rounds do not record, such as evaluation, is included by the ratio of elapsed to recorded time.

    Args:
        left: runs that have not ended.
        rounds: all runs, with their finished rounds.
        new_rounds: the rounds that were finished since the grid was started.
        elapsed: seconds since the grid was started.
        workers: number of parallel runs.
    """
    counted = sum(_seconds(line) for line in new_rounds)
    if not counted:
        return None
    seconds_by_method: dict[tuple[str, str], dict[int, float]] = {}
    for run, lines in rounds:
        seconds_by_round = seconds_by_method.setdefault((run.protocol.name, run.name), {})
        seconds_by_round |= {i: _seconds(line) for i, line in enumerate(lines)}
    mean = fmean(_seconds(line) for _, lines in rounds for line in lines)
    done = {run.folder: len(lines) for run, lines in rounds}
    needs = []
    for run in left:
        seconds_by_round = seconds_by_method[run.protocol.name, run.name]
        otherwise = seconds_by_round[max(seconds_by_round)] if seconds_by_round else mean
        to_come = range(done[run.folder], run.protocol.rounds + 1)
        needs.append(sum(seconds_by_round.get(i, otherwise) for i in to_come))
    at_best = max(sum(needs) / workers, max(needs, default=0.0))
    return at_best * elapsed * workers / counted


def _seconds(record: RoundRecord) -> float:
    return sum(record.seconds.values())
