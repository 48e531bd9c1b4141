"""Time a new user's steps: from a fresh clone to the result of each tutorial.

``python tools/newcomer.py --save results/newcomer.md`` clones the repository into an empty folder,
installs spinal into a new environment, and runs the code of each tutorial there.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from spinal.runs.origin import commit, processor

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ".[label,parquet,ray]"
TUTORIALS = {
    "images": "Label your images",
    "texts": "Label texts",
    "python": "Choose points from Python",
    "compare": "Compare methods",
    "paper": "Reproduce the paper",
    "cluster": "Run on a cluster",
}
_RUN = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import pages; "
    "pages.run_page(sys.argv[2], Path.cwd())"
)


class Cost(NamedTuple):
    """Seconds on the clock, and seconds of all processors together."""

    clock: float
    processor: float

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost(self.clock + other.clock, self.processor + other.processor)


def timed(*command: str | Path, cwd: Path) -> Cost:
    """Run a command and measure it; what it prints is shown only if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.monotonic() - start, used)


def page(install: Cost, tutorials: dict[str, Cost]) -> str:
    """The measurements as a page in Markdown."""
    lines = [
        "# From a clone to a result",
        "",
        f"`python tools/newcomer.py`, commit {commit().get('commit', 'unknown')[:7]}, "
        f"{os.cpu_count()} cores of {processor()}, load average {os.getloadavg()[1]:.0f}. Minutes "
        "of processor time, and minutes on the clock of this machine in brackets. On an idle "
        "machine the two are about equal.",
        "",
        "| tutorial | clone and install | tutorial | clone to result |",
        "|---|--:|--:|--:|",
    ]
    for name, cost in tutorials.items():
        cells = [f"{c.processor / 60:.1f} ({c.clock / 60:.0f})" for c in (install, cost)]
        total = install + cost
        lines.append(
            f"| {TUTORIALS[name]} | {' | '.join(cells)} | "
            f"**{total.processor / 60:.1f}** ({total.clock / 60:.0f}) |"
        )
    lines += [
        "",
        f"Installing is `pip install -c constraints.txt '{PACKAGE}'` into an empty environment, "
        "with packages from a nearby index. The time that a person needs to read and label is not "
        "counted: in the first two tutorials a simulated annotator answers at once.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", type=Path, help="page to write; printed without")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spinal-newcomer-") as temporary:
        folder = Path(temporary)
        clone, python = folder / "clone", folder / "env" / "bin" / "python"
        install = timed("git", "clone", "--quiet", ROOT, clone, cwd=folder)
        install += timed(sys.executable, "-m", "venv", folder / "env", cwd=folder)
        pins = ("-c", clone / "constraints.txt")
        install += timed(python, "-m", "pip", "install", "--quiet", *pins, PACKAGE, cwd=clone)
        costs = {}
        for name in TUTORIALS:
            work = folder / name
            work.mkdir()
            code = (python, "-c", _RUN, clone / "docs", f"tutorials/{name}.md")
            costs[name] = timed(*code, cwd=work)
            print(name, costs[name], flush=True)
    text = page(install, costs)
    if options.save is None:
        print(text)
    else:
        options.save.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
