"""Output that several commands share: tables, lists of written files, progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import JustifyMethod


def print_table(
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    justify: JustifyMethod = "left",
) -> None:
    """Print a table without lines. Long cells are wrapped; the header is left out if empty."""
    columns = list(columns)
    table = Table(
        box=None, header_style="dim", title=title, title_justify="left", show_header=any(columns)
    )
    for column in columns:
        table.add_column(column, overflow="fold", justify=justify)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def print_frame(cells: pd.DataFrame, title: str) -> None:
    """Print a data frame as a table."""
    rows = ([str(cell) for cell in row] for row in cells.to_numpy().tolist())
    print_table(map(str, cells.columns), rows, title)


def print_written(paths: Iterable[Path], folder: Path) -> None:
    """List the files that were written to a folder, but not to its subfolders."""
    for path in paths:
        if path.parent == folder:
            Console().print(f"written: {path}", highlight=False, soft_wrap=True)


@contextmanager
def tasks_bar(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for several tasks, if on a terminal; updated with ``(what, done, total)``."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda what, done, total: progress.update(
            task, description=what, completed=done, total=total
        )


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, if on a terminal; updated with ``(done, total)``."""
    with tasks_bar(what) as update:
        yield lambda done, total: update(what, done, total)
