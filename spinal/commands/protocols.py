"""``spinal protocols``: lists the built-in experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from spinal.commands.completion import complete_protocol
from spinal.commands.output import print_table


def protocols(
    name: Annotated[
        str | None,
        typer.Argument(help="Print the TOML file of this one.", autocompletion=complete_protocol),
    ] = None,
) -> None:
    """List the built-in protocols, or print one, to be copied and edited.

    `NAME@SCALE` is a protocol at another scale: as in the paper, small enough for a CPU, and so on.
    """
    import tomli_w

    from spinal.experiments import load_protocol, protocol_names, protocol_text
    from spinal.experiments.protocol import scale_names

    if name is not None:
        protocol = load_protocol(name)  # an unknown name raises an error with a suggestion
        is_file = name in protocol_names()
        text = protocol_text(name) if is_file else tomli_w.dumps(protocol.to_mapping())
        typer.echo(text, nl=False)
        return
    rows = []
    for listed in protocol_names():
        p = load_protocol(listed)
        labels = f"{p.initial}, then {p.rounds} x {p.batch}"
        scales = ", ".join(f"@{scale}" for scale in scale_names(listed)[1:])
        rows.append((listed, p.dataset, labels, p.network.name, scales))
    print_table(("protocol", "dataset", "labels", "network", "scales"), rows)
