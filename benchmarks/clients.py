"""Waiting time for the next image when many people label a large folder at the same time.

    python -m benchmarks.clients --out results/label-clients.md

Each client sends an answer, gets the next question, loads its image, and waits for a few seconds.
It also asks for the state of the page as often as the server allows. Clients keep their connections
open, and run together in a separate process. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from label import write_images
from label_memory import Server
from machine import commit, peak_memory

_CHUNK = 10_000


class Connection:
    """A connection that is kept open, and opened again when the server has closed it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes) -> tuple[str, bytes]:
        """Head and content of the reply."""
        was_open = self._streams is not None
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self.address)
            reader, writer = self._streams
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].split("\r\n")[0])
            return head, await reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            self.close()
            if not was_open:
                raise
            return await self.send(request)

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


@dataclass
class Client:
    """A page that somebody labels on.

    Attributes:
        waits: seconds from each answer until the next image was there.
        states: seconds of each request for the state.
        errors: replies other than 200, and lost connections.
    """

    address: tuple[str, int]
    number: int
    think: float
    waits: list[float] = field(default_factory=list)
    states: list[float] = field(default_factory=list)
    errors: int = 0

    async def label(self, end: float) -> None:
        """Answer until the end."""
        chance = random.Random(self.number)
        await asyncio.sleep(chance.uniform(0, self.think))
        who = {"client": f"c{self.number}", "person": f"p{self.number}", "n": 4}
        connection = Connection(self.address)
        reply = await self.request(connection, "/api/next", who)
        while time.monotonic() < end and reply and reply["questions"]:
            await asyncio.sleep(chance.expovariate(1 / self.think))
            image = reply["questions"][0]["image"]
            answer = {"token": f"{self.number}-{image}", "image": image, "label": "a"}
            began = time.monotonic()
            reply = await self.request(connection, "/api/answers", {**who, "answers": [answer]})
            if reply and reply["questions"]:
                await self.request(connection, f"/image/{reply['questions'][0]['image']}")
                self.waits.append(time.monotonic() - began)
        connection.close()

    async def watch(self, end: float) -> None:
        """Ask for the state of the page until the end."""
        await asyncio.sleep(random.Random(-self.number).uniform(0, self.think))
        connection = Connection(self.address)
        while time.monotonic() < end:
            began = time.monotonic()
            state = await self.request(connection, f"/api/state?person=p{self.number}")
            self.states.append(time.monotonic() - began)
            await asyncio.sleep(state["poll"] if state else 1.5)
        connection.close()

    async def request(
        self, connection: Connection, path: str, body: dict[str, Any] | None = None
    ) -> Any:
        """The reply of a request, as JSON; None for an image or a failure."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\n"
        head += f"Host: {self.address[0]}:{self.address[1]}\r\nContent-Type: application/json\r\n"
        try:
            said, content = await connection.send(
                f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
            )
        except (asyncio.IncompleteReadError, OSError, ValueError):
            self.errors += 1
            return None
        if " 200 " not in said.splitlines()[0]:
            self.errors += 1
            return None
        return json.loads(content) if "application/json" in said else None


async def run(clients: list[Client], seconds: float) -> None:
    """Let all clients label for so many seconds."""
    end = time.monotonic() + seconds
    await asyncio.gather(*(work for c in clients for work in (c.label(end), c.watch(end))))


def main() -> None:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument(
        "--think", type=float, default=5.0, help="seconds for an answer, on average"
    )
    parser.add_argument("--place", type=Path, default=Path("label-benchmark"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = (options.place / f"files-{options.files}").absolute()
    for start in range(0, options.files, _CHUNK):
        n = min(_CHUNK, options.files - start)
        noise = np.random.default_rng(start).integers(0, 256, (n, 8, 8, 3), np.uint8)
        write_images(folder / f"{start:06}", noise)
    shutil.rmtree(folder / ".spinal", ignore_errors=True)
    with Server(folder, ("--features", "pixels")) as server:
        link = urlsplit(server.link)
        address = link.hostname or "", link.port or 0
        clients = [Client(address, i, options.think) for i in range(options.clients)]
        asyncio.run(run(clients, options.seconds))
        memory, load = peak_memory(server.process.pid), os.getloadavg()[0]
    waits = 1000 * np.concatenate([client.waits for client in clients])
    states = 1000 * np.concatenate([client.states for client in clients])
    text = f"""# {options.clients} people, {options.files:,} images

`python -m benchmarks.clients {" ".join(sys.argv[1:])}`, commit {commit("spinal", "benchmarks")}.
Linux, two cores, which server, worker, clients and other programs shared: the load of the machine
was {load:.0f}. Each client answers every {options.think:g} s on average and asks for the state of
the page as often as the server says, for {options.seconds:g} s.

| | number | median, ms | 99 %, ms |
|---|---|---|---|
| from an answer to the next image | {len(waits):,} | {np.median(waits):.0f} | {np.quantile(waits, 0.99):.0f} |
| state of the page | {len(states):,} | {np.median(states):.0f} | {np.quantile(states, 0.99):.0f} |

Failed requests: {sum(client.errors for client in clients)}. Memory of the server: {memory:.0f} MB.
"""  # noqa: E501
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
