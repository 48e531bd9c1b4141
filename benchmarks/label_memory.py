"""Cost of `spinal label` for many files: memory of server and worker, and seconds to start.

    python benchmarks/label_memory.py --files 100000 --out results/label-memory.md

A simulated person labels small images of noise, all different. Their features are 1,280 numbers, as
many as those of EfficientNet-Lite0, from a network that takes almost no time. Linux only.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from label import say, write_images
from machine import commit, peak_memory

from spinal.label.web.simulate import Connection, Person

NETWORK = """
import torch

def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 1280), torch.nn.ReLU())
"""
_CHUNK = 10_000


@dataclass
class Server:
    """``spinal label`` in a process of its own, and when it was started."""

    folder: Path
    options: tuple[str, ...] = ()
    began: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.link = f"http://127.0.0.1:{port}/"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spinal", "label", str(self.folder), "--classes", "a,b,c",
             "--port", str(port), "--no-browser", *self.options],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "label at" in line:
                break
        self.connection = Connection(self.link)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self.began

    def wait(self, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the state of the page is as wanted; the state."""
        for i in range(10**6):
            state = self.connection.get("/api/state")
            if until(state):
                break
            if i % 20 == 19:
                say(f"{self.seconds():.0f} s: {state['worker']}")
            time.sleep(0.5)
        return state

    def peaks(self) -> dict[str, float]:
        """The most memory that the server and the worker have had, in MB."""
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        worker = max(peak_memory(int(pid)) for pid in children)
        return {"server": peak_memory(self.process.pid), "worker": worker}


def main() -> None:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--place", type=Path, default=Path("label-benchmark"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.place.mkdir(parents=True, exist_ok=True)
    rows = [measure(n, options) for n in (1000, options.files)]
    lines = [
        f"`python benchmarks/label_memory.py {' '.join(sys.argv[1:])}`, commit {commit('spinal')}",
        "",
        f"{options.answers} answers by a simulated person; 1,280 features; most memory, in MB.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + "---|" * len(rows[0]),
        *("| " + " | ".join(row.values()) + " |" for row in rows),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def measure(n: int, options: argparse.Namespace) -> dict[str, str]:
    """A row of the table, for so many files."""
    folder = (options.place / f"files-{n}").absolute()
    for start in range(0, n, _CHUNK):
        noise = np.random.default_rng(start).integers(
            0, 256, (min(_CHUNK, n - start), 8, 8, 3), np.uint8
        )
        write_images(folder / f"{start:06}", noise)
    shutil.rmtree(folder / ".spinal", ignore_errors=True)
    network = options.place / "network.py"
    network.write_text(NETWORK)
    truth = {
        f"{start:06}/{i:06}.png": "abc"[i % 3]
        for start in range(0, n, _CHUNK)
        for i in range(_CHUNK)
    }
    with Server(folder, ("--features", f"{network.absolute()}:make@8")) as server:
        up = server.seconds()
        first = server.connection.post("/api/next", {"client": "c", "person": "p", "n": 1})
        asked = server.seconds()
        assert first["questions"]
        server.wait(lambda state: state["worker"]["state"] not in ("starting", "features")
                    or state["worker"].get("done", 0) > 100)  # fmt: skip
        covered = server.seconds()
        session = Person(truth, "abc").label(server.link, options.answers, pace=0.5)
        state = server.wait(lambda state: state["rounds"] and state["worker"]["state"] == "idle")
        ready, peaks = server.seconds(), server.peaks()
    fits = [each["seconds"] for each in state["rounds"]]
    return {
        "files": f"{n:,}",
        "server": f"{peaks['server']:.0f}",
        "worker": f"{peaks['worker']:.0f}",
        "page, s": f"{up:.1f}",
        "a question, s": f"{asked:.1f}",
        "questions for coverage, s": f"{covered:.1f}",
        "all features and fits, s": f"{ready:.0f}",
        "a fit, s": f"{np.median(fits):.1f}",
        "next image, ms: median, 99 %": "{:.0f}, {:.0f}".format(
            *(1000 * np.quantile(session.waits, q) for q in (0.5, 0.99))
        ),
    }


if __name__ == "__main__":
    main()
