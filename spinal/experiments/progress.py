"""Progress of a grid, read from its runs on disk: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table

from spinal.errors import SpinalError
from spinal.experiments.forecast import seconds_left
from spinal.experiments.runs import Run
from spinal.runs import RoundRecord

#: States of a run, in the order of the table.
STATES = ("running", "failed", "waiting", "done")


class Progress:
    """Shows the progress of runs during a ``with`` block.

    Args:
        runs: all runs of the grid, in the order in which they are started.
        workers: number of parallel runs.
        console: where to show the progress.
    """

    def __init__(self, runs: Sequence[Run], workers: int, console: Console | None = None) -> None:
        self.runs = runs
        self.workers = workers
        self.console = console or Console()
        self._ended: dict[Path, str | None] = {}
        self._rounds = _Rounds()
        for run in runs:
            if len(self._rounds(run)) > run.protocol.rounds:
                self._ended[run.folder] = None
        self._at_start = [len(self._rounds(run)) for run in runs]
        self._busy = min(workers, len(runs) - len(self._ended))
        self._started = time.monotonic()
        self._live: Live | None = None
        self._stop = threading.Event()
        self._printer: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live = Live(get_renderable=self.table, console=self.console, refresh_per_second=2)
            self._live.start()
        else:
            self.console.print(self.summary(), highlight=False, soft_wrap=True)
            self._printer = threading.Thread(target=self._print_rounds, daemon=True)
            self._printer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._live is not None:
            self._live.stop()
        if self._printer is not None:
            self._printer.join()

    def ended(self, run: Run, message: str | None) -> None:
        """Record that a run has ended, with an error message if it failed."""
        self._ended[run.folder] = message
        if message is not None:
            self.console.print(f"{run.title} failed: {escape(message)}", soft_wrap=True)

    def states(self) -> list[str]:
        """The state of each run. Runs start in order, so the first unfinished ones are running."""
        free, states = self.workers, []
        for run in self.runs:
            if run.folder in self._ended:
                states.append("done" if self._ended[run.folder] is None else "failed")
            elif free:
                free -= 1
                states.append("running")
            else:
                states.append("waiting")
        return states

    def table(self) -> Group:
        """The runs by state, in the order of `STATES`, as many as fit on the screen."""
        states = self.states()
        order = sorted(range(len(self.runs)), key=lambda i: STATES.index(states[i]))
        room = max(self.console.height - 4, states.count("running"))
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for name in ("", "protocol", "method", "seed", "labels", "accuracy", "rounds"):
            table.add_column(name, justify="right" if name in ("seed", "labels") else "left")
        for i in order[:room]:
            run, lines = self.runs[i], self._rounds(self.runs[i])
            last, of = (lines[-1] if lines else None), run.protocol.rounds + 1
            bar = Bars(BarColumn(20), TextColumn(f"{len(lines)}/{of}"))
            bar.add_task("", completed=len(lines), total=of)
            accuracy, labels = (f"{last.accuracy:.1%}", str(last.labels)) if last else ("", "")
            cells = (run.protocol.name, run.name, str(run.seed), labels)
            style = {"running": "bold", "failed": "red"}.get(states[i], "dim")
            table.add_row(states[i], *cells, accuracy, bar, style=style)
        more = len(order) - room
        return Group(table, *([f"and {more} more"] if more > 0 else []), self.summary())

    def summary(self) -> str:
        """Numbers of runs by state, and the expected end."""
        states = self.states()
        counts = [f"{states.count(s)} {s}" for s in STATES if s in states]
        done = sum(len(self._rounds(run)) for run in self.runs)
        total = sum(run.protocol.rounds + 1 for run in self.runs)
        return f"{', '.join(counts)}; {done} of {total} rounds{self._end()}"

    def _end(self) -> str:
        """The expected remaining time and end; empty if unknown."""
        left = [run for run in self.runs if run.folder not in self._ended]
        rounds = [(run, self._rounds(run)) for run in self.runs]
        new_rounds = [
            line
            for (_, lines), start in zip(rounds, self._at_start, strict=True)
            for line in lines[start:]
        ]
        elapsed = time.monotonic() - self._started
        seconds = seconds_left(left, rounds, new_rounds, elapsed, self._busy)
        if seconds is None:
            return ""
        rest = timedelta(seconds=round(seconds))
        now = datetime.now()
        end = now + rest
        when = f"{end:%H:%M}" if end.date() == now.date() else f"{end:%a %d %b %H:%M}"
        return f", about {rest} left, until {when}"

    def _print_rounds(self) -> None:
        shown = list(self._at_start)
        while True:
            last_look = self._stop.wait(1.0)
            for i, run in enumerate(self.runs):
                for line in self._rounds(run)[shown[i] :]:
                    shown[i] += 1
                    self.console.print(
                        f"{run.title}: {line.labels} labels, accuracy {line.accuracy:.4f}"
                        f"{self._end()}",
                        soft_wrap=True,
                    )
            if last_look:
                return


class _Rounds:
    """The rounds of runs; a file is read again only when it has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], list[RoundRecord]]] = {}

    def __call__(self, run: Run) -> list[RoundRecord]:
        try:
            status = (run.folder / "rounds.jsonl").stat()
            stamp = status.st_mtime_ns, status.st_size
            if run.folder not in self._known or self._known[run.folder][0] != stamp:
                self._known[run.folder] = stamp, run.rounds()
            return self._known[run.folder][1]
        except (OSError, SpinalError):  # none yet; or damaged, which the run itself reports
            return []
