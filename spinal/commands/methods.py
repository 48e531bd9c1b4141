"""``spinal methods``: lists the methods."""

from __future__ import annotations

from spinal.commands.output import print_table


def methods() -> None:
    """List the methods, and the acquisition functions that each supports."""
    from spinal.methods import METHODS

    columns = ("method", "what it does", "acquisition (default first)")
    print_table(columns, [(n, m.summary, ", ".join(m.choices)) for n, m in METHODS.items()])
