"""Shell completion of names. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path

import spinal


def complete_method(incomplete: str) -> list[tuple[str, str]]:
    """Methods that start with this text, each with its summary."""
    from spinal.methods import METHODS

    return [(n, m.summary) for n, m in METHODS.items() if n.startswith(incomplete)]


def complete_acquisition(incomplete: str) -> list[str]:
    """Acquisition functions of any method that start with this text."""
    from spinal.methods import METHODS

    names = dict.fromkeys(name for method in METHODS.values() for name in method.choices)
    return [name for name in names if name.startswith(incomplete)]


def complete_protocol(incomplete: str) -> list[str]:
    """Built-in protocols, and TOML files in the current folder, that start with this text."""
    # Found by file names, because spinal.experiments imports torch.
    folder = Path(spinal.__file__).parent / "experiments" / "protocols"
    names = [path.stem for path in sorted(folder.glob("*.toml"))]
    files = [path.name for path in sorted(Path().glob("*.toml"))]
    return [name for name in (*names, *files) if name.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Datasets that start with this text."""
    from spinal.data.names import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]
