"""One measurement of one contender in a process of its own.

    python acquisition_worker.py acquisition_spinal '{"what": "batchbald", "n": 2000, ...}'

Prints a line of JSON: seconds of CPU (of all threads), megabytes that the peak grew by, the result.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

from worker import _status

#: Runs that take longer (in seconds) are not repeated.
SLOW = 5.0


def main() -> None:
    """Measure, and print."""
    # The answer has the standard output to itself: libraries that print there go to stderr.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, case = importlib.import_module(sys.argv[1]), json.loads(sys.argv[2])
    repeats = case.pop("repeats", 1)
    run = getattr(module, case.pop("what"))(**case)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that making the data left
    before = _status("VmRSS")
    seconds: list[float] = []
    while not seconds or (len(seconds) < repeats and seconds[0] < SLOW):
        start = time.process_time()
        result = run()
        seconds.append(time.process_time() - start)
        if len(seconds) == 1:
            memory = (_status("VmHWM") - before) / 1e6
    versions = {"python": platform.python_version(), **module.VERSIONS}
    record = {"seconds": seconds, "memory": memory, "versions": versions, **result}
    print(json.dumps(record), file=answer, flush=True)


if __name__ == "__main__":
    main()
