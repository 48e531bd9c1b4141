"""The origin of results: versions, the commit of spinal, the machine."""

from __future__ import annotations

import functools
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import spinal

_PACKAGE = Path(spinal.__file__).parent


@functools.cache
def origin() -> dict[str, dict[str, Any]]:
    """The tables ``versions`` and ``machine`` of a ``run.toml``."""
    versions = {
        "spinal": spinal.__version__,
        **commit(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "numpy": metadata.version("numpy"),
    }
    return {
        "versions": versions,
        "machine": {"system": platform.platform(), "processor": processor()},
    }


def commit(package: Path = _PACKAGE) -> dict[str, Any]:
    """The ``commit`` of a package, and whether its files were ``changed`` since; empty if unknown.

    The commit of an installed package is unknown. Its folder may lie inside another repository, so
    the files must be tracked there to count.
    """
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        head = _git(package, "rev-parse", "HEAD").strip()
        return {"commit": head, "changed": bool(_git(package, "status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return {}


def _git(folder: Path, *arguments: str) -> str:
    # Without optional locks: this only reads, and must not block a commit.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, as far as it is known."""
    if cpuinfo.exists():  # Linux, where Python's platform module does not report it
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"
