"""``spinal doctor``: shows what is installed, what was found, and what is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from rich.markup import escape

import spinal
from spinal.commands.options import DataDir
from spinal.commands.output import print_table

#: Extras for the development of spinal itself.
_DEVELOPMENT = ("dev", "docs")
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def doctor(data_dir: DataDir = None) -> None:
    """Show versions, devices, threads, caches and data, and the commands that install the rest.

    Include its output in bug reports.
    """
    sections = (
        ("Versions", _versions()),
        ("Devices and threads", _machine()),
        ("Folders", _folders(data_dir)),
        ("Extras", _extras()),
        ("Datasets", _datasets(data_dir)),
    )
    for i, (title, rows) in enumerate(sections):
        if i:
            print()
        print_table(("", "", ""), [tuple(map(escape, row)) for row in rows], title)


def _versions() -> Iterator[tuple[str, str, str]]:
    from spinal.runs.origin import commit

    here = commit()
    changed = " with uncommitted changes" if here.get("changed") else ""
    at = f"commit {here['commit'][:7]}{changed}" if here else ""
    yield "spinal", spinal.__version__, at or str(Path(spinal.__file__).parent)
    yield "Python", platform.python_version(), platform.platform()
    for name in _PACKAGES:
        yield name, metadata.version(name), ""


def _machine() -> Iterator[tuple[str, str, str]]:
    import torch

    from spinal.networks.network import choose_device
    from spinal.runs.origin import processor

    chosen = choose_device().type
    yield "cpu", f"{os.cpu_count()} cores", processor()
    for i in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{properties.total_memory / 2**30:.0f} GB", properties.name
    if torch.backends.mps.is_available():
        yield "mps", "available", "Apple GPU"
    yield "device", chosen, 'chosen by `device="auto"`'
    named = ", ".join(f"{name}={os.environ[name]}" for name in _THREADS if name in os.environ)
    yield "threads", str(torch.get_num_threads()), named or "set OMP_NUM_THREADS to change it"


def _folders(data_dir: Path | None) -> Iterator[tuple[str, str, str]]:
    from spinal.data.search import own_folder
    from spinal.encoders.points import cache_folder

    for what, folder, variable in (
        ("datasets", own_folder(data_dir), "SPINAL_DATA"),
        ("features", cache_folder(), "SPINAL_CACHE"),
    ):
        yield what, _size(folder), f"{folder} (change it with {variable})"


def _size(folder: Path) -> str:
    if not folder.is_dir():
        return "empty"
    n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{n_bytes / 1e6:,.0f} MB"


def _extras() -> Iterator[tuple[str, str, str]]:
    """Each extra, whether its packages are installed, and the command that installs them."""
    from packaging.requirements import Requirement

    try:
        metadata_of = metadata.metadata("spinal")
    except metadata.PackageNotFoundError:
        yield "all", "unknown", "spinal itself is not installed; in its folder: pip install ."
        return
    requirements = [Requirement(line) for line in metadata.requires("spinal") or ()]
    for extra in metadata_of.get_all("Provides-Extra") or ():
        if extra in _DEVELOPMENT:
            continue
        own = [
            r for r in requirements
            if r.marker is not None
            and r.marker.evaluate({"extra": extra})
            and not r.marker.evaluate({"extra": ""})
        ]  # fmt: skip
        missing = [r.name for r in own if not _is_installed(r.name)]
        if missing:
            yield extra, "missing", f"{', '.join(missing)}: pip install 'spinal[{extra}]'"
        else:
            yield extra, "installed", ", ".join(r.name for r in own)


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return importlib.util.find_spec(name.replace("-", "_")) is not None
    return True


def _datasets(data_dir: Path | None) -> Iterator[tuple[str, str, str]]:
    from spinal.data import list_datasets

    for row in list_datasets(data_dir):
        if row.problem:
            yield row.name, "damaged", f"{row.source}: {row.problem}"
        elif row.source:
            yield row.name, "found", row.source
        else:
            yield row.name, "missing", f"spinal datasets {row.name}"
