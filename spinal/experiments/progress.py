"""What a grid is doing, read from the runs on disk: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table

from spinal.experiments.runs import Run, read_rounds


class Progress:
    """Shows the runs while the block it guards is executed."""

    def __init__(self, runs: Sequence[Run], console: Console | None = None) -> None:
        self.runs = runs
        self.console = console or Console()
        self.started = time.monotonic()
        self._at_start = sum(len(run.rounds()) for run in runs)
        self._live: Live | None = None
        self._stop = threading.Event()
        self._printer: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live = Live(
                get_renderable=self._table, console=self.console, refresh_per_second=2
            )
            self._live.start()
        else:
            self._printer = threading.Thread(target=self._print_rounds, daemon=True)
            self._printer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._live is not None:
            self._live.stop()
        if self._printer is not None:
            self._printer.join()

    def remaining(self, done: int, total: int) -> str:
        """The time that the rest will take, at the pace so far."""
        here = done - self._at_start
        if not here or done >= total:
            return ""
        seconds = (time.monotonic() - self.started) / here * (total - done)
        return f"about {timedelta(seconds=round(seconds))} left"

    def _table(self) -> Group:
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for name in ("protocol", "method", "seed", "labels", "accuracy", "rounds"):
            table.add_column(name, justify="right" if name in ("seed", "labels") else "left")
        done = total = 0
        for run in self.runs:
            lines = read_rounds(run.folder / "rounds.jsonl")
            of = run.protocol.rounds + 1
            done, total = done + len(lines), total + of
            last = lines[-1] if lines else {}
            bar = Bars(BarColumn(20), TextColumn(f"{len(lines)}/{of}"))
            bar.add_task("", completed=len(lines), total=of)
            accuracy = f"{last['accuracy']:.1%}" if last else ""
            labels = str(last.get("labels", ""))
            table.add_row(run.protocol.name, run.name, str(run.seed), labels, accuracy, bar)
        return Group(table, f"{done} of {total} rounds  {self.remaining(done, total)}")

    def _print_rounds(self) -> None:
        shown = [len(run.rounds()) for run in self.runs]
        total = sum(run.protocol.rounds + 1 for run in self.runs)
        while True:
            last_look = self._stop.wait(1.0)
            for i, run in enumerate(self.runs):
                for line in run.rounds()[shown[i] :]:
                    shown[i] += 1
                    self.console.print(
                        f"{run.protocol.name} {run.name} seed {run.seed}: {line['labels']} labels, "
                        f"accuracy {line['accuracy']:.4f}  "
                        f"{self.remaining(sum(shown), total)}".rstrip(),
                        soft_wrap=True,
                    )
            if last_look:
                return
