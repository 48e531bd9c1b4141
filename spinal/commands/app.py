"""The command ``spinal``; its manual is ``spinal --help``.

Commands import what they need only when called, so that ``spinal --help`` does not import torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from spinal import __version__
from spinal.commands import (
    classes,
    datasets,
    demo,
    demo_spn,
    doctor,
    export,
    fit,
    full_mnist,
    label,
    label_studio,
    methods,
    predict,
    protocols,
    rank,
    report,
    run,
    tune,
    uncertainty_alone,
)
from spinal.errors import SpinalError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help=(
        "Choose which points to label next, and train a classifier on the labels.\n\n"
        "**Try it:** `spinal demo` compares three methods on small images that need no "
        "download.\n\n"
        "**Label your own images:** `spinal label FOLDER --classes cat,dog` opens a page; "
        "`spinal export FOLDER` writes the labels.\n\n"
        "**Compare methods:** `spinal run PROTOCOL --method spn-cnn --method random --seeds 0-4`, "
        "then `spinal report runs`. If interrupted, the same command continues.\n\n"
        "**Write your own experiment:** `spinal protocols digits > mine.toml`, edit it, "
        "`spinal run mine.toml`.\n\n"
        "**If something is missing:** `spinal doctor` shows what is installed and what was found, "
        "and the commands that install the rest."
    ),
)


def main() -> None:
    """Run the command line; a SpinalError is one line on standard error, with exit code 2."""
    try:
        app(standalone_mode=True)
    except SpinalError as error:
        message = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(message, soft_wrap=True, highlight=False)
        sys.exit(2)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that go before a command."""


#: The commands of each panel of the manual, in order.
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Try it": (demo.demo, demo_spn.demo_spn),
    "Label": (
        label.label, classes.classes, fit.fit, predict.predict, rank.rank,
        export.export, label_studio.label_studio,
    ),
    "Compare methods": (run.run, report.report, tune.tune),
    "The paper's other experiments": (
        uncertainty_alone.uncertainty_alone, full_mnist.full_mnist,
    ),
    "Information": (protocols.protocols, methods.methods, datasets.datasets, doctor.doctor),
}  # fmt: skip
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(_command.__name__.replace("_", "-"), rich_help_panel=_panel)(_command)
