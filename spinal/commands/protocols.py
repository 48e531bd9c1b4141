"""``spinal protocols``: what experiments come with spinal."""

from __future__ import annotations

from typing import Annotated

import typer

from spinal.commands.completion import complete_protocol
from spinal.commands.output import print_table


def protocols(
    name: Annotated[
        str | None,
        typer.Argument(help="Print this one's TOML file.", autocompletion=complete_protocol),
    ] = None,
) -> None:
    """List the protocols that come with spinal, or print one, to be copied and edited.

    `NAME@SCALE` is one at another scale: as the paper states it, small enough for a CPU, and so on.
    """
    import tomli_w

    from spinal.experiments import load_protocol, protocol_names, protocol_text
    from spinal.experiments.protocol import scale_names

    if name is not None:
        protocol = load_protocol(name)  # a wrong name gets its suggestion here
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
