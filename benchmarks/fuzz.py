"""Damaged files for every loader, and strange requests for every endpoint of the page.

    python -m benchmarks.fuzz --cases 1000 --seed 0

Each case damages a file that spinal wrote or would read, or sends a request that no page sends.
What is allowed is a result, or a `SpinalError`: one line that says what is wrong. Any other
exception, a crash of the interpreter, more than 30 seconds or 4 GB of memory is a failure.
Cases of a target are run in a process of its own, and can be repeated by their number.
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
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fuzz_targets import TARGETS, Target, make_project

SECONDS, MEMORY = 30.0, 4 << 30


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


def value(rng: random.Random, depth: int = 0) -> Any:
    """A JSON value that may stand anywhere in a request."""
    plain = [None, True, -1, 0, 1, 3, 2**63, 10**40, 0.5, float("inf"), "", "red", "t", "\0",
             "é\ud800", "x" * 200, "../a.png", []]  # fmt: skip
    kind = rng.randrange(8)
    if kind == 0 and depth < 3:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 1 and depth < 3:
        names = ("token", "image", "label", "reason", "n", "person")
        return {rng.choice(names): value(rng, depth + 1) for _ in range(rng.randrange(5))}
    return rng.choice(plain)


def request(client: Any, rng: random.Random) -> None:
    """Send a request; an exception of the server is raised here."""
    paths = ["/", "/static/app.js", "/image/{}", "/thumb/{}", "/api/state", "/api/guesses",
             "/api/outliers", "/api/mistakes", "/api/disagreements", "/api/problems", "/api/next",
             "/api/answers", "/api/undo", "/api/classes", "/api/classes/undo", "/api/agreement",
             "/api/browse", "/api/about/{}", "/api/neighbours/{}", "/api/dashboard", "/%00",
             "/nothing"]  # fmt: skip
    path = rng.choice(paths).format(rng.choice((1, 2, 0, 99, -1, 2**63, "x", "%2e%2e")))
    names = ("token", "label", "start", "n", "person")
    query = {name: str(rng.choice((1, -1, "", "red", "9" * 30, "\0", "é"))) for name in names}
    headers = {"content-type": "application/json"}
    if rng.random() < 0.2:
        name = rng.choice(("origin", "host", "cookie", "sec-fetch-site", "content-length", "range"))
        headers[name] = rng.choice(
            ("http://[", "http://[::1", "", 'x="', "-1", "null", "9" * 30, "a;b")
        )
    if rng.random() < 0.7:
        given = {"token": "t", "image": 1, "label": "red", "reason": "guess"}
        body = {"client": "c", "person": "ada", "n": 1, "answers": [given], "tokens": ["t"]}
        kind = rng.choice(("add", "rename", "merge", "remove", "key"))
        body |= {"kind": kind, "name": rng.choice(("cat", "x")), "target": rng.choice(("dog", "y"))}
        for _ in range(rng.randrange(3)):
            rng.choice((body, given))[rng.choice([*body, *given])] = value(rng)
        content = json.dumps(body).encode()
        if rng.random() < 0.2:
            content = damage(content, rng)
        reply = client.post(path, content=content, headers=headers, params=query)
    else:
        reply = client.get(path, headers=headers, params=query)
    if reply.status_code >= 500:
        raise AssertionError(f"{path}: status {reply.status_code}: {reply.text[:200]}")


def run_requests(folder: Path, seed: str, first: int, last: int) -> None:
    """Requests to one server."""
    from starlette.testclient import TestClient

    from spinal.label.store.project import open_project
    from spinal.label.web.security import Rules
    from spinal.label.web.server import Server

    make_project(folder)
    project = open_project(folder)
    app = Server(project, Rules("127.0.0.1", 8421, None)).app
    with TestClient(app, base_url="http://127.0.0.1:8421") as client:
        for case in range(first, last):
            attempt(case, lambda case=case: request(client, random.Random(f"{seed}-{case}")))
    project.close()


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
    print(json.dumps({"case": case, "failure": end}), flush=True)


def run_child(name: str, seed: int, first: int, last: int) -> None:
    """Run the cases of a target in this process, with a limit of memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="spinal-fuzz-") as place:
        if name == "requests":
            run_requests(Path(place), f"{seed}-{name}", first, last)
        else:
            run_loader(TARGETS[name], Path(place), f"{seed}-{name}", first, last)


def run_target(name: str, seed: int, cases: int) -> dict[int, str]:
    """The failures of a target, by case; a process that crashes or hangs is followed by another."""
    failures: dict[int, str] = {}
    case = 0
    while case < cases:
        command = [
            sys.executable,
            "-m",
            "benchmarks.fuzz",
            "--child",
            name,
            str(seed),
            str(case),
            str(cases),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            started = case - 1
            # The first line waits for imports, and for the sample.
            timer = _kill_after(child, 10 * SECONDS)
            for line in child.stdout:
                timer.cancel()
                said = json.loads(line)
                case = started = said["case"]
                if "failure" in said:
                    case += 1
                    if said["failure"]:
                        failures[started] = said["failure"]
                timer = _kill_after(child, SECONDS)
            timer.cancel()
            words = child.stderr.read().decode(errors="replace").strip().splitlines()
            code = child.wait()
        if case < cases:
            if started < case:  # between two cases: it cannot go on
                raise SystemExit(f"{name}: ended with code {code} ({words[-1:]})")
            end = f"killed after {SECONDS:g} s" if code == -signal.SIGKILL else f"code {code}"
            failures[case] = f"{end} {words[-1:]}"
            case += 1
    return failures


def _kill_after(child: subprocess.Popen[bytes], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    return timer


def main() -> None:
    """Run all targets, and list what failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    names = [*TARGETS, "requests"]
    parser.add_argument("--targets", default=",".join(names), help="[default: all]")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *numbers = options.child
        run_child(name, *map(int, numbers))
        return
    failed = 0
    for name in options.targets.split(","):
        failures = run_target(name, options.seed, options.cases)
        failed += len(failures)
        print(f"{name}: {options.cases} cases, {len(failures)} failures", flush=True)
        for case, end in list(failures.items())[:5]:
            print(f"  case {case}: {end}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
