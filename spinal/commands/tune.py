"""``spinal tune``: chooses settings on the validation set, as in the paper or with Optuna."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spinal.commands.completion import complete_protocol
from spinal.commands.options import Changes, DataDir, Workers, parse_seeds
from spinal.errors import SpinalError

if TYPE_CHECKING:
    from spinal.experiments.tuning.searches import Search


class Searches(str, Enum):
    """The search over settings."""

    paper = "paper"
    optuna = "optuna"


class Parts(str, Enum):
    """The part to tune."""

    network = "network"
    circuit = "circuit"


def tune(
    protocol: Annotated[
        str,
        typer.Argument(
            help="Name (`spinal protocols`), `NAME@SCALE`, or TOML file.",
            metavar="PROTOCOL",
            autocompletion=complete_protocol,
        ),
    ],
    part: Annotated[
        list[Parts] | None,
        typer.Option(help="Part to tune; may be repeated. [default: network, then circuit]"),
    ] = None,
    search: Annotated[
        Searches, typer.Option(help="How settings are searched; see above.")
    ] = Searches.paper,
    learning_rates: Annotated[
        str | None,
        typer.Option(help="Such as .001,.01, instead of the paper's.", metavar="NUMBERS"),
    ] = None,
    dropouts: Annotated[
        str | None,
        typer.Option(help="Such as 0,.25,.5, instead of the paper's.", metavar="NUMBERS"),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Sizes of the dense layer at width 1, such as 128,512, instead of the paper's.",
            metavar="NUMBERS",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Settings that Optuna tries for each part. [default: 50]")
    ] = None,
    labels: Annotated[
        int | None, typer.Option(help="Labelled points in a run. [default: half of the budget]")
    ] = None,
    seeds: Annotated[
        str, typer.Option(help="Such as 0-1; every setting is run once for each seed.")
    ] = "0-1",
    out: Annotated[
        Path | None,
        typer.Option(help="The protocol file to write. [default: PROTOCOL-tuned.toml]"),
    ] = None,
    changes: Changes = None,
    workers: Workers = 0,
    data_dir: DataDir = None,
) -> None:
    """Choose learning rate, dropout and size of the dense layer on a protocol's validation set.

    The winner is written as a protocol file for `spinal run`. The test set is not read.

    **As in the paper** (the default): first the learning rate is chosen, then dropout, then the
    size of the dense layer, by mean accuracy on the validation set over two runs. This is done for
    the network, and then for the SPN on its features. The values are the paper's: for LeNet 100
    learning rates, each at two dropout rates, and three sizes; for VGG a handful; for the SPN ten
    learning rates and ten dropout rates. The paper does not give the number of labels: see
    --labels.

    **With Optuna** (`pip install 'spinal[tune]'`): `--search optuna --trials 100` also chooses
    batch size, weight decay and label smoothing of the network, weight of the likelihood and
    scale of the leaves of the SPN.

    The settings of the protocol are always among those compared. A protocol without a validation
    set is tuned on a fifth of its pool. The labelled points are the initial set and random points.

    Trials are stored next to the file, in `PROTOCOL-tuned.trials.jsonl`, as they finish: the same
    command resumes an interrupted search, and a longer search reuses them. The same seeds give
    the same winner, with any number of workers.

    **Examples**

    - `spinal tune digits` and then `spinal run digits-tuned.toml`

    - `spinal tune mnist@cpu --part network --learning-rates .001,.002,.004 --labels 300`

    - `spinal tune fashion-mnist-1k@cpu --search optuna --trials 100 --seeds 0-2`
    """
    from spinal.experiments import load_protocol
    from spinal.experiments.tuning.display import result_table, show_progress
    from spinal.experiments.tuning.tuner import PARTS, check_target, default_labels, tuned_text
    from spinal.experiments.tuning.tuner import tune as find
    from spinal.files import write_text

    untuned = load_protocol(protocol, changes or [])
    chosen = parse_seeds(seeds)
    way = _search(search, learning_rates, dropouts, sizes, trials, chosen[0])
    out = out or Path(f"{untuned.name.replace('@', '-')}-tuned.toml")
    trials_file = out.with_suffix(".trials.jsonl")
    check_target(out, protocol, trials_file)
    labels = default_labels(untuned) if labels is None else labels
    console = Console()
    with show_progress(console) as on_step:
        tuned = find(
            untuned, way, trials_file, parts=[chosen.value for chosen in part] if part else PARTS,
            labels=labels, seeds=chosen, workers=workers, data_dir=data_dir, on_step=on_step,
        )  # fmt: skip
    options = {"--search": search.value, "--learning-rates": learning_rates, "--dropouts": dropouts,
               "--sizes": sizes, "--trials": trials, "--labels": labels,
               "--seeds": seeds}  # fmt: skip
    command = ["spinal", "tune", protocol, *(f"--part={chosen.value}" for chosen in part or [])]
    command += [f"{name}={value}" for name, value in options.items() if value is not None]
    command += [f"--set={change}" for change in changes or []]
    write_text(out, tuned_text(tuned, shlex.join(command)))
    for tuned_part in tuned.parts:
        console.print(result_table(tuned_part))
    console.print(
        f"\nwritten: {out}; all trials: {trials_file}\nnow: spinal run {out}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _search(
    search: Searches,
    learning_rates: str | None,
    dropouts: str | None,
    sizes: str | None,
    trials: int | None,
    seed: int,
) -> Search:
    """The search that the options select; an error for options that do not apply to it."""
    from spinal.experiments.tuning.searches import OptunaSearch, PaperSearch

    if search is Searches.paper:
        if trials is not None:
            raise SpinalError("--trials is the number of trials of Optuna: add --search optuna")
        return PaperSearch(
            _numbers(learning_rates, "--learning-rates", low=0.0),
            _numbers(dropouts, "--dropouts", below=1.0),
            _whole(_numbers(sizes, "--sizes", low=0.0)),
        )
    if learning_rates is not None or dropouts is not None or sizes is not None:
        raise SpinalError(
            "--learning-rates, --dropouts and --sizes do not go with Optuna, which chooses values"
        )
    if trials is not None and trials < 1:
        raise SpinalError(f"--trials {trials}: give 1 or more")
    return OptunaSearch(50 if trials is None else trials, seed)


def _numbers(
    text: str | None, option: str, *, low: float | None = None, below: float = float("inf")
) -> tuple[float, ...] | None:
    """``.1,.2`` as numbers: above ``low`` (or not below 0), and below ``below``."""
    if text is None:
        return None
    try:
        values = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError as error:
        raise SpinalError(f"{option} {text!r}: give numbers, such as .001,.01") from error
    wrong = [v for v in values if not ((v > low if low is not None else v >= 0) and v < below)]
    if wrong:
        span = "more than 0" if low is not None else f"from 0 to below {below:g}"
        raise SpinalError(f"{option}: {wrong[0]:g} is out of range: {span}")
    return values


def _whole(values: tuple[float, ...] | None) -> tuple[int, ...] | None:
    if values is not None and any(value % 1 for value in values):
        raise SpinalError("--sizes: give integers, such as 128,512")
    return None if values is None else tuple(int(value) for value in values)
