"""The commit, the processor and peaks of memory, for reports of benchmarks. Linux only."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit(*measured: str) -> str:
    """The commit that was measured, and whether these folders had changes on top of it."""

    def git(*arguments: str) -> str:
        run = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
        return run.stdout.strip()

    changed = git("status", "--porcelain", "--", *measured)
    return git("rev-parse", "--short", "HEAD") + (" with uncommitted changes" if changed else "")


def processor() -> str:
    """The model of the CPU, as the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def peak_memory(process: int | str = "self") -> float:
    """The most memory that a process had, in MB.

    By what the process says: `getrusage` begins with the peak of the one that started it.
    """
    found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def processor_seconds(process: int) -> float:
    """Seconds of all processors that a process and its descendants had, ended ones included."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(ticks.get(each, 0) for each in found) / os.sysconf("SC_CLK_TCK")
