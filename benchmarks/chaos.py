"""Faults in a labelling server while people answer: no answer may be lost.

    python -m benchmarks.chaos --kills 1000 --parts 20 --out results/chaos

People answer through the HTTP interface, like the page: an answer is sent with the same token
until it is acknowledged. Meanwhile the server, its worker or both are killed; the decoders are
killed; the project folder disappears for a second; files cannot grow, as on a full disk; files that
can be computed again are damaged; a second server is started. After each fault, the page must
accept an answer again without help, except that a killed server is restarted. Sometimes the next
fault waits until the worker is back too. Each part is a separate project; at its end, each
acknowledged answer must be stored exactly once. With ``--out``, results of parts are kept, and
finished parts are not run again. Linux only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.machine import commit
from benchmarks.results import Results
from spinal.label.store.project import Project, open_project

CLASSES = ("red", "green", "blue")
IMAGES = 400
#: Within which the page has to take answers again.
PATIENCE = 120.0
#: Seconds between two things on average, and after how many of them the worker has to be back.
PAUSE, WORKER_EVERY = 0.4, 15


def make_images(folder: Path, seed: int) -> None:
    """Noisy patches of three colours."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for i in range(IMAGES):
        pixels = np.eye(3)[i % 3] * 150 + 50 + rng.normal(0, 30, (24, 24, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{i:04}.png")


class Server:
    """``spinal label``, as a user starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start it; wait until it listens."""
        self.process = self.launch(self.port)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise SystemExit("the server does not listen")

    def launch(self, port: int) -> subprocess.Popen[bytes]:
        """Start the command."""
        command = [sys.executable, "-m", "spinal", "label", str(self.folder), "--no-browser"]
        options = ["--port", str(port)]
        if not (self.folder / ".spinal").exists():
            options += ["--classes", ",".join(CLASSES), "--features", "pixels"]
        with (self.folder.parent / "server.log").open("ab") as log:
            return subprocess.Popen(command + options, stdout=log, stderr=log)

    def children(self, what: str) -> list[int]:
        """The processes below it whose command contains a text."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if what in (entry / "cmdline").read_text() and parent == self.process.pid:
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """As the kernel would."""
        self.process.kill()
        self.process.wait()


class Person(threading.Thread):
    """Answers, and insists on each answer until it is acknowledged or refused."""

    def __init__(self, name: str, port: int, seed: int, pace: float) -> None:
        super().__init__(daemon=True)
        self.who = {"client": name, "person": name, "n": 4}
        self.port, self.random, self.pace = port, random.Random(seed), pace
        self.acknowledged: dict[str, tuple[int, str]] = {}
        self.sent: set[str] = set()
        self.replies: Counter[str] = Counter()
        self.ending = threading.Event()

    def run(self) -> None:
        """Answer until the end."""
        questions: list[dict[str, Any]] = []
        while not self.ending.wait(self.pace):
            # When all is answered, go on with what was answered before.
            image = questions[0]["image"] if questions else self.random.randint(1, IMAGES)
            label = CLASSES[self.random.randrange(3)]
            token = f"{self.name}-{len(self.sent)}"
            self.sent.add(token)
            answer = {"token": token, "image": image, "label": label}
            reply = self.insist("/api/answers", {**self.who, "answers": [answer]})
            if reply is not None:
                self.acknowledged[token] = image, label
                questions = reply["questions"]

    def insist(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The reply; None if it was refused, or at the end."""
        while not self.ending.is_set():
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                headers = {"Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                said = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.replies[type(error).__name__] += 1
                time.sleep(0.2)
                continue
            self.replies[str(response.status)] += 1
            if response.status == 200:
                return said
            if response.status < 500:
                raise SystemExit(f"refused: {said}")
            time.sleep(0.2)
        return None


class Chaos:
    """What happens to a server.

    Attributes:
        happened: how often each thing did.
        kills: of server, worker or both; of a worker that was not there does not count.
    """

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.random = server, random.Random(seed)
        self.home = server.folder / ".spinal"
        self.happened: Counter[str] = Counter()
        self.kills = 0
        kills = [self.kill_server, self.kill_worker, self.kill_both]
        others = [
            self.kill_decoders, self.vanish, self.fill_disk, self.damage, self.start_second,
        ]  # fmt: skip
        self.kinds = [*kills * 5, *others]

    def happen(self) -> str:
        """One thing, by chance."""
        kind = self.random.choice(self.kinds)
        kind()
        self.happened[kind.__name__] += 1
        return kind.__name__

    def kill_server(self) -> None:
        self.server.kill()
        self.kills += 1
        self.server.start()

    def kill_worker(self) -> None:
        workers = self._kill("spinal.label.learning.worker")
        self.kills += bool(workers)

    def kill_both(self) -> None:
        self._kill("spinal.label.learning.worker")
        self.kill_server()

    def _kill(self, what: str) -> int:
        processes = self.server.children(what)
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return len(processes)

    def kill_decoders(self) -> None:
        self._kill("spinal.label.store.decoder")

    def vanish(self) -> None:
        elsewhere = self.home.with_name(".elsewhere")
        self.home.rename(elsewhere)
        time.sleep(self.random.uniform(0, 2))
        # A worker that was writing may have made the folder again: it holds nothing.
        with suppress(FileNotFoundError):
            subprocess.run(["rm", "-rf", str(self.home)], check=True)
        elsewhere.rename(self.home)

    def fill_disk(self) -> None:
        limit, size = resource.RLIMIT_FSIZE, (self.home / "labels.sqlite").stat().st_size
        pid = self.server.process.pid
        old = resource.prlimit(pid, limit)
        resource.prlimit(pid, limit, (size, old[1]))
        time.sleep(self.random.uniform(0, 2))
        resource.prlimit(pid, limit, old)

    def damage(self) -> None:
        """Overwrite a part of a file that can be made again."""
        keep = ("labels.sqlite", "project.json", "lock", "token", "worker.log")
        files = [
            path for path in self.home.rglob("*")
            if path.is_file() and not path.name.startswith(keep) and path.parent.name != "copies"
        ]  # fmt: skip
        if files:
            with suppress(OSError), self.random.choice(sorted(files)).open("r+b") as file:
                file.seek(self.random.randrange(os.fstat(file.fileno()).st_size + 1))
                file.write(self.random.randbytes(self.random.randrange(1, 5000)))

    def start_second(self) -> None:
        second = self.server.launch(0)
        if second.wait(PATIENCE) != 2:
            raise SystemExit("a second server was not refused")


def wait_for(people: list[Person], what: str) -> float:
    """Until each person has been acknowledged an answer more; the seconds that it takes."""
    before = [len(person.acknowledged) for person in people]
    began = time.monotonic()
    while any(len(p.acknowledged) == n for p, n in zip(people, before, strict=True)):
        if time.monotonic() > began + PATIENCE:
            raise SystemExit(f"the page did not come back after {what}")
        if not all(person.is_alive() for person in people):
            raise SystemExit(f"an answer was refused after {what}")
        time.sleep(0.05)
    return time.monotonic() - began


def wait_for_worker(port: int) -> None:
    """Until the worker has nothing to do, or has finished a round since this call."""
    end = time.monotonic() + 2 * PATIENCE
    worker: dict[str, Any] = {}
    n_rounds = None
    while time.monotonic() < end:
        with suppress(OSError, ValueError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/api/state")
            state = json.loads(connection.getresponse().read())
            worker = state["worker"]
            n_rounds = len(state["rounds"]) if n_rounds is None else n_rounds
            if worker["state"] in ("idle", "fitted") or len(state["rounds"]) > n_rounds:
                return
        time.sleep(0.2)
    raise SystemExit(f"the worker did not come back: {worker}")


def compare(project: Project, people: list[Person]) -> int:
    """The number of acknowledged answers; ends the program if others are stored."""
    project.store.check()
    stored = Counter(row["token"] for row in project.store.answers())
    rows = {row["token"]: (row["image"], row["label"]) for row in project.store.answers()}
    acknowledged = {t: said for person in people for t, said in person.acknowledged.items()}
    sent = {token for person in people for token in person.sent}
    lost = [token for token in acknowledged if rows.get(token) != acknowledged[token]]
    doubled = [token for token, n in stored.items() if n > 1]
    invented = [token for token in stored if token not in sent]
    if lost or doubled or invented:
        raise SystemExit(f"lost: {lost[:5]}, doubled: {doubled[:5]}, invented: {invented[:5]}")
    return len(acknowledged)


def run_part(kills: int, seed: int, n_people: int, pace: float) -> dict[str, Any]:
    """A project to which things happen until there were so many kills; what came of it."""
    with tempfile.TemporaryDirectory(prefix="spinal-chaos-") as place:
        folder = Path(place) / "images"
        make_images(folder, seed)
        server = Server(folder)
        people = [Person(f"person{i}", server.port, seed + i, pace) for i in range(n_people)]
        chaos = Chaos(server, seed)
        seconds = []
        try:
            for person in people:
                person.start()
            wait_for(people, "the start")
            while chaos.kills < kills:
                time.sleep(chaos.random.expovariate(1 / PAUSE))
                what = chaos.happen()
                seconds.append(round(wait_for(people, what), 2))
                if sum(chaos.happened.values()) % WORKER_EVERY == 0:
                    wait_for_worker(server.port)
                print(f"{chaos.kills}: {what} {seconds[-1]}", flush=True)
            wait_for_worker(server.port)
            for person in people:
                person.ending.set()
            for person in people:
                person.join(60)
        finally:
            server.kill()
        log = (Path(place) / "server.log").read_text(errors="replace")
        project = open_project(folder)
        acknowledged = compare(project, people)
        project.close()
    replies: Counter[str] = sum((person.replies for person in people), Counter())
    return {
        "acknowledged": acknowledged, "happened": dict(chaos.happened), "replies": dict(replies),
        "seconds": seconds, "tracebacks": log.count("Traceback"),
    }  # fmt: skip


def write_page(folder: Path, lines: list[dict[str, Any]]) -> None:
    """The sums over all parts, as a page."""
    happened = sum((Counter(line["happened"]) for line in lines), Counter())
    replies = sum((Counter(line["replies"]) for line in lines), Counter())
    seconds = np.concatenate([line["seconds"] for line in lines])
    table = "\n".join(f"| {name.replace('_', ' ')} | {n:,} |" for name, n in happened.most_common())
    kills, acknowledged, tracebacks = (
        f"{sum(line[name] for line in lines):,}" for name in ("kills", "acknowledged", "tracebacks")
    )
    said = ", ".join(f"{name} {n:,}" for name, n in replies.most_common())
    text = f"""# Everything happens while people answer

`python -m benchmarks.chaos --kills 1000 --parts 20 --out results/chaos`, commit
{", ".join(dict.fromkeys(line["commit"] for line in lines))}; {len(lines)} parts are done. Each is a
project of {IMAGES} images and two people who answer without pause.

**{kills} kills of server, worker or both, {len(seconds):,} things in all; {acknowledged} answers
were acknowledged, none was lost, none is stored twice.** After each thing the page took answers by
itself: within {np.median(seconds):.2f} s (median; 99 %: {np.quantile(seconds, 0.99):.1f} s, longest
{seconds.max():.1f} s), counted from when a killed server listened again. Tracebacks in the output
of the server: {tracebacks}.

| what happened | times |
|---|---|
{table}

Replies to the people: {said}. What is not 200 was sent again with the same token until it was.
"""
    (folder / "README.md").write_text(text)


def main() -> None:
    """Run the parts that are not there yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=30, help="in all parts")
    parser.add_argument("--parts", type=int, default=1, help="projects, one after the other")
    parser.add_argument("--seed", type=int, default=0, help="of the first part")
    parser.add_argument("--people", type=int, default=2)
    parser.add_argument("--pace", type=float, default=0.1, help="seconds between two answers")
    parser.add_argument("--out", type=Path, help="folder of the results [default: not kept]")
    options = parser.parse_args()
    results = None
    if options.out:
        results = Results(options.out / "results.jsonl", ("kills", "seed"))
    for seed in range(options.seed, options.seed + options.parts):
        line = {"kills": options.kills // options.parts, "seed": seed}
        if results is not None and line in results:
            continue
        part = run_part(line["kills"], seed, options.people, options.pace)
        print(f"part {seed}: {part}", flush=True)
        if results is not None:
            results.add([line | part | {"commit": commit("spinal", "benchmarks")}])
            write_page(options.out, results.lines)


if __name__ == "__main__":
    main()
