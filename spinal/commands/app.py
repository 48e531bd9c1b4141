"""The command ``spinal``: ``spinal --help`` is its manual.

Commands import what they need when they are called: ``spinal --help`` need not wait for torch.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from spinal import __version__
from spinal.commands import (
    datasets,
    demo,
    demo_spn,
    export,
    fit,
    full_mnist,
    label,
    label_studio,
    methods,
    predict,
    protocols,
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
    add_completion=False,
    help=(
        "Decide which points to label next, and train the classifier from them.\n\n"
        "**Try it:** `spinal demo` compares three ways of choosing on small images that need no "
        "download.\n\n"
        "**Compare methods:** `spinal run PROTOCOL --method spn-cnn --method random --seeds 0-4`, "
        "then `spinal report runs`. Stopped in the middle, the same command goes on.\n\n"
        "**Tune one:** `spinal tune PROTOCOL` chooses learning rates and dropout on the validation "
        "set, and writes a protocol file.\n\n"
        "**The paper's other experiments:** `spinal uncertainty-alone` and `spinal full-mnist`.\n\n"
        "**Write your own experiment:** `spinal protocols digits > mine.toml`, edit it, "
        "`spinal run mine.toml`.\n\n"
        "**Data:** `spinal datasets` says what is there, and where to put what is not."
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


app.command()(demo.demo)
app.command("demo-spn")(demo_spn.demo_spn)
app.command()(run.run)
app.command()(report.report)
app.command()(protocols.protocols)
app.command()(methods.methods)
app.command()(datasets.datasets)
app.command("uncertainty-alone")(uncertainty_alone.uncertainty_alone)
app.command("full-mnist")(full_mnist.full_mnist)
app.command()(tune.tune)
app.command()(label.label)
app.command()(fit.fit)
app.command()(export.export)
app.command()(predict.predict)
app.command("label-studio")(label_studio.label_studio)
