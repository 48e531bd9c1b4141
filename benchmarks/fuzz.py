"""Damaged files for every loader, and invalid requests for every endpoint of the page.

    python -m benchmarks.fuzz --cases 10000 --seed 0 --out results/fuzz

Each case damages a file that spinal wrote or would read, or sends a request that the page would
never send. A result, or a `SpinalError` with one line that says what is wrong, is allowed. Any
other exception, a crash of the interpreter, more than 30 seconds or 4 GB of memory is a failure.
The cases of each target run in a separate process, and can be repeated by their number. With
``--out``, results are saved as they are measured, and existing results are not measured again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz_requests import ENDPOINTS, run_endpoints
from benchmarks.fuzz_targets import TARGETS, Target
from benchmarks.machine import commit, peak_memory
from benchmarks.results import Results

SECONDS, MEMORY = 30.0, 4 << 30


class Outcome(NamedTuple):
    """What came of the cases of a target.

    Attributes:
        failures: by case.
        slowest: seconds of the slowest case.
        memory: peak of the process, in MB.
    """

    failures: dict[int, str]
    slowest: float
    memory: float


def damage(content: bytes, rng: random.Random) -> bytes:
    """A few changes of a file: bytes replaced, cut out, put in or repeated, or the end missing."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = bytearray(content)
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 16, 300))
        kind = rng.randrange(7)
        if kind == 0:
            data[at : at + n] = rng.randbytes(len(data[at : at + n]))
        elif kind == 1:
            data[at : at + n] = rng.choice((b"\0", b"\xff", b"\x7f")) * len(data[at : at + n])
        elif kind == 2:
            del data[at : at + n]
        elif kind == 3:
            data[at:at] = rng.randbytes(n)
        elif kind == 4:
            data[at:at] = data[at : at + n] * rng.choice((1, 50))
        elif kind == 5:
            del data[at:]
        else:  # a number in a text
            digits = [i for i, byte in enumerate(data[:4000]) if 48 <= byte < 58]
            if digits:
                where = rng.choice(digits)
                data[where : where + 1] = rng.choice((b"-1", b"9" * 12, b"1e400", b"0", b'"x"'))
        content = bytes(data)
    return content


def run_loader(target: Target, folder: Path, seed: str, first: int, last: int) -> None:
    """Damaged copies of one sample."""
    whole = folder / "whole"
    whole.mkdir()
    target.make(whole)
    names = [
        p.relative_to(whole)
        for p in sorted(whole.rglob("*"))
        if p.is_file() and p.suffix != ".lock"
    ]
    for case in range(first, last):
        rng = random.Random(f"{seed}-{case}")
        random.seed(case)
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        path = copy / rng.choice(names)
        path.write_bytes(damage(path.read_bytes(), rng))
        attempt(case, lambda copy=copy: target.load(copy))


def attempt(case: int, action: Callable[[], Any]) -> None:
    """Report a case: before, so that a crash is known by its number, and how it ended."""
    from spinal.errors import SpinalError

    print(json.dumps({"case": case}), flush=True)
    try:
        action()
        end = None
    except SpinalError:
        end = None
    except Exception as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        where = f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last else "?"
        end = f"{type(error).__name__} at {where}: {str(error)[:150]}"
    print(json.dumps({"case": case, "failure": end, "memory": peak_memory()}), flush=True)


def run_child(name: str, seed: int, first: int, last: int) -> None:
    """Run the cases of a target in this process, with a limit of memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="spinal-fuzz-") as place:
        if name in ENDPOINTS:
            cases = range(first, last)
            run_endpoints([name], Path(place), f"{seed}-{name}", cases, attempt, damage)
        else:
            run_loader(TARGETS[name], Path(place), f"{seed}-{name}", first, last)


def run_target(name: str, seed: int, cases: int) -> Outcome:
    """Run the cases of a target; a process that crashes or hangs is followed by another."""
    failures: dict[int, str] = {}
    case, slowest, memory = 0, 0.0, 0.0
    while case < cases:
        numbers = [str(number) for number in (seed, case, cases)]
        command = [sys.executable, "-m", "benchmarks.fuzz", "--child", name, *numbers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            words: list[bytes] = []
            # All the time: a pipe that is full would hold the child.
            reader = threading.Thread(target=words.extend, args=(child.stderr,), daemon=True)
            reader.start()
            started, began = case - 1, time.monotonic()
            # The first line waits for imports, and for the sample.
            timer = _kill_after(child, 10 * SECONDS)
            for line in child.stdout:
                timer.cancel()
                said = json.loads(line)
                case = started = said["case"]
                if "failure" in said:
                    slowest = max(slowest, time.monotonic() - began)
                    memory = max(memory, said["memory"])
                    case += 1
                    if said["failure"]:
                        failures[started] = said["failure"]
                began = time.monotonic()
                timer = _kill_after(child, SECONDS)
            timer.cancel()
            code = child.wait()
            reader.join()
        if case < cases:
            last = words[-1].decode(errors="replace").strip() if words else ""
            if started < case:  # between two cases: it cannot go on
                raise SystemExit(f"{name}: ended with code {code} ({last})")
            end = f"killed after {SECONDS:g} s" if code == -signal.SIGKILL else f"code {code}"
            failures[case] = f"{end} {last}"
            case += 1
    return Outcome(failures, slowest, memory)


def _kill_after(child: subprocess.Popen[bytes], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    return timer


def write_page(folder: Path, lines: Sequence[dict[str, Any]]) -> None:
    """The table of all results, as a page."""
    n = sum(line["cases"] for line in lines)
    failed = sum(line["failed"] for line in lines)
    rows = [
        f"| {line['target']} | {line['cases']:,} | {line['failed']} | {line['slowest']:.2f} "
        f"| {line['memory']:.0f} | {line['commit']} |"
        for line in lines
    ]
    text = f"""# Damaged files and strange requests

`python -m benchmarks.fuzz --cases 10000 --seed 0 --out results/fuzz`. Each case damages a file that
spinal wrote or would read, or sends a request that no page sends. Allowed is a result, or an error
of one line that says what is wrong. A traceback, a crash, a status of 500 or more, {SECONDS:g} s
or {MEMORY >> 30} GB is a failure. {n:,} cases, {failed} failures.
Targets that are not in the table have not been run at this size.

| target | cases | failures | slowest, s | memory, MB | commit |
|---|---|---|---|---|---|
"""
    (folder / "README.md").write_text(text + "\n".join(rows) + "\n")


def main() -> None:
    """Run all targets, and list what failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    names = [*TARGETS, *ENDPOINTS]
    parser.add_argument("--targets", default=",".join(names), help="[default: all]")
    parser.add_argument("--out", type=Path, help="folder of the results [default: not kept]")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *numbers = options.child
        run_child(name, *map(int, numbers))
        return
    results = None
    if options.out:
        results = Results(options.out / "results.jsonl", ("target", "cases", "seed"))
    failed = 0
    for name in options.targets.split(","):
        if name not in names:
            raise SystemExit(f"there is no target {name!r}: {', '.join(names)}")
        line = {"target": name, "cases": options.cases, "seed": options.seed}
        if results is not None and line in results:
            continue
        outcome = run_target(name, options.seed, options.cases)
        failed += len(outcome.failures)
        print(f"{name}: {options.cases} cases, {len(outcome.failures)} failures", flush=True)
        for case, end in list(outcome.failures.items())[:5]:
            print(f"  case {case}: {end}", flush=True)
        if results is not None:
            line |= {
                "failed": len(outcome.failures), "slowest": round(outcome.slowest, 3),
                "memory": round(outcome.memory), "commit": commit("spinal", "benchmarks"),
                "failures": dict(list(outcome.failures.items())[:20]),
            }  # fmt: skip
            results.add([line])
            write_page(options.out, results.lines)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
