"""Display of tuning: a progress bar or lines, and a table of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spinal.experiments.tuning.tuner import Step, TunedPart, describe, number, percent

#: Number of settings in the table, the best ones.
_ROWS = 10


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[Step], None]]:
    """A bar for each part on a terminal, a line for each new trial elsewhere."""
    if not console.is_terminal:

        def write(step: Step) -> None:
            if step.is_new:
                console.print(
                    f"{step.part} {step.done}/{step.total}: {describe(step.trial.setting)}, "
                    f"seed {step.trial.seed}: accuracy {step.outcome.accuracy:.4f}",
                    highlight=False, soft_wrap=True,
                )  # fmt: skip

        yield write
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[last]}"),
                  console=console) as bars:  # fmt: skip
        tasks = {}

        def advance(step: Step) -> None:
            if step.part not in tasks:
                tasks[step.part] = bars.add_task(step.part, total=step.total, last="")
            last = f"{describe(step.trial.setting)}: {step.outcome.accuracy:.1%}"
            bars.update(tasks[step.part], completed=step.done, last=last)

        yield advance


def result_table(tuned: TunedPart) -> Table:
    """The best settings of a part, and the protocol's own."""
    shown = list(tuned.tried[:_ROWS])
    if tuned.own not in shown:
        shown.append(tuned.own)
    keys = list(dict.fromkeys(key for result in tuned.tried for key in result.setting))
    left = len(tuned.tried) - len(shown)
    more = f"; {left} more in the file of trials" if left else ""
    table = Table(
        box=None, header_style="dim", title=f"{tuned.part}: validation accuracy in percent{more}",
        title_justify="left",
    )  # fmt: skip
    for column in ("", *keys, "accuracy ± spread", "NLL"):
        table.add_column(column, justify="left" if not column else "right")
    for rank, result in enumerate(tuned.tried):
        if result not in shown:
            continue
        setting = tuned.before if result is tuned.own else result.setting
        name = "best" if rank == 0 else str(rank + 1)
        values = [number(setting[key]) if key in setting else "as built" for key in keys]
        table.add_row(
            f"{name}, as before" if result is tuned.own else name, *values, percent(result),
            f"{result.nll:.3f}", style="bold" if rank == 0 else None,
        )  # fmt: skip
    return table
