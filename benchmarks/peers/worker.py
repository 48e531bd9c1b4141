"""One contender in a process of its own: reads a request per line, answers with a line of JSON.

python worker.py circuit_spinal
{"do": "build", "grid": [16, 8], "seed": 0}
{"do": "time", "what": "step", "batch": 64, "times": 10}
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from typing import Any

from parameters import draw_parameters, draw_points


class Worker:
    """Answers requests by methods of the same name."""

    def __init__(self, contender: str) -> None:
        self.module = importlib.import_module(contender)
        self.points: dict[int, Any] = {}

    def versions(self) -> dict[str, str]:
        """What is being measured."""
        return {"python": platform.python_version(), **self.module.VERSIONS}

    def build(self, grid: list[int], seed: int) -> None:
        """Make the circuit, with the parameters of this seed."""
        self.grid = (grid[0], grid[1])
        self.contender = self.module.Contender(self.grid, draw_parameters(self.grid, seed))
        self.points.clear()

    def parity(self, points: int, seed: int) -> dict[str, Any]:
        """Values and gradients, to be compared with those of the other contenders."""
        z, y = self.contender.prepare(*draw_points(self.grid, points, seed))
        values, gradient = self.contender.parity(z, y)
        return {"values": values.tolist(), "gradient": gradient.tolist()}

    def time(self, what: str, batch: int, times: int) -> float:
        """Seconds of CPU, of all threads, for one training step or forward pass."""
        if batch not in self.points:
            self.points = {batch: self.contender.prepare(*draw_points(self.grid, batch, 1))}
        run, points = getattr(self.contender, what), self.points[batch]
        start = time.process_time()
        for _ in range(times):
            run(*points)
        return (time.process_time() - start) / times

    def memory(self, batch: int) -> float:
        """Megabytes by which the first training step raises the peak above what is resident."""
        z, y = self.contender.prepare(*draw_points(self.grid, batch, 1))
        before = _status("VmRSS")
        self.contender.step(z, y)
        return (_status("VmHWM") - before) / 1e6


def _status(key: str) -> int:
    """A line of the kernel's account of this process, in bytes."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(key))


def main() -> None:
    """Answer until the input ends."""
    # Answers have the standard output to themselves: libraries that print there go to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("do"))(**request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
