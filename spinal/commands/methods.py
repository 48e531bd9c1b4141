"""``spinal methods``: what can be compared."""

from __future__ import annotations

from spinal.commands.output import print_table


def methods() -> None:
    """List the methods, and the acquisition functions that go with each."""
    from spinal.methods import METHODS

    columns = ("method", "what it does", "acquisition (the first by default)")
    print_table(columns, [(n, m.summary, ", ".join(m.choices)) for n, m in METHODS.items()])
