"""A simulated person who answers through the HTTP interface of the page."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from spinal.errors import SpinalError
from spinal.label.known.sets import read_sets
from spinal.label.known.table import read_table, read_text_table
from spinal.label.store.sets import Label

#: Number of questions to hold, like the page, so that the next images are loaded ahead.
AHEAD = 4


def read_answers(
    table: Path, text_column: str | None = None, *, multi: bool = False
) -> dict[str, Label]:
    """The class of each image, from a CSV table with the columns ``path`` and ``label``.

    Args:
        table: the file.
        text_column: for texts, the column with the texts, instead of ``path``.
        multi: whether an image can have several classes; see `spinal.label.known.sets`.
    """
    if multi:
        return dict(read_sets(table, text_column))
    return dict(read_table(table) if text_column is None else read_text_table(table, text_column))


@dataclass
class Session:
    """Answers of a session, and waiting times for the next image.

    Attributes:
        answers: number of answers.
        waits: seconds from each answer until the next image was loaded.
        states: state of the worker during each wait, such as ``fitting``; empty if it changed.
        state: final state of the server.
    """

    answers: int = 0
    waits: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)

    def waits_during(self, state: str) -> list[float]:
        """The waits during which the worker was in this state."""
        return [wait for wait, was in zip(self.waits, self.states, strict=True) if was == state]

    def summary(self) -> str:
        """A few lines to print."""
        lines = [f"{self.answers} answers"]
        for name, chosen in (("", self.waits), (" while a fit ran", self.waits_during("fitting"))):
            if chosen:
                middle, last = (1000 * np.quantile(chosen, q) for q in (0.5, 0.99))
                lines.append(f"next image{name}: median {middle:.0f} ms, 99 % in {last:.0f} ms")
        audits = [last for last in self.state.get("rounds", []) if last["audited"]]
        for last in audits[-1:]:
            lines.append(
                f"model of round {last['round']}, from {last['trained_on']} answers: about "
                f"{last['accuracy']:.0%} of all images right ({last['low']:.0%} to "
                f"{last['high']:.0%}, by {last['audited']} answers drawn at random)"
            )
        return "\n".join(lines)


class Person:
    """Answers from known labels, with random mistakes.

    Args:
        labels: the class of each image, by path; where an image can have several, all of them.
        classes: the possible answers; an image of another class is skipped; where an image can have
            several classes, only the other class is left out.
        mistakes: share of wrong answers; where an image can have several classes, one is wrong.
        seed: for the mistakes.
        name: name of the person.
    """

    def __init__(
        self,
        labels: Mapping[str, Label],
        classes: Sequence[str],
        *,
        mistakes: float = 0.0,
        seed: int = 0,
        name: str = "simulated",
    ) -> None:
        self.labels, self.classes, self.mistakes = labels, tuple(classes), mistakes
        self.seed, self.name = seed, name

    def answer(self, path: str) -> Label | None:
        """The answer about an image, always the same."""
        label = self.labels.get(path)
        rng = np.random.default_rng([self.seed, *path.encode()])
        if isinstance(label, tuple):
            chosen = {name for name in label if name in self.classes}
            if rng.random() < self.mistakes:
                chosen ^= {str(rng.choice(self.classes))}
            return tuple(sorted(chosen))
        if label not in self.classes:
            return None
        if rng.random() < self.mistakes:
            return str(rng.choice([name for name in self.classes if name != label]))
        return label

    def label(
        self,
        link: str,
        budget: int | None,
        *,
        pace: float = 0.0,
        on_answer: Callable[[int], None] | None = None,
    ) -> Session:
        """Label until the budget is used up, or nothing is left to ask.

        Args:
            link: the address of the page.
            budget: total number of labelled images, including those of earlier sessions.
            pace: seconds from an image's appearance to its answer.
            on_answer: called with the number of answers so far.
        """
        server, session = Connection(link), Session()
        who = {"client": self.name, "person": self.name, "n": AHEAD}
        fetched: dict[int, bool] = {}
        place = "text" if server.get("/api/state")["kind"] == "texts" else "image"

        def look(image: int) -> bool:
            if image not in fetched:
                fetched[image] = bool(server.get_bytes(f"/{place}/{image}"))
            return fetched[image]

        def working() -> str:
            return server.get("/api/state")["worker"]["state"]

        reply = server.post("/api/next", who)
        while reply["questions"] and (budget is None or reply["progress"]["labelled"] < budget):
            # Like the page, load the next images, and leave out those that cannot be shown.
            if not all(look(question["image"]) for question in reply["questions"]):
                reply = server.post("/api/next", who)
                continue
            time.sleep(pace)
            question = reply["questions"][0]
            answer = {
                "token": f"{self.name}-{time.time_ns()}",
                "image": question["image"],
                "label": self.answer(question["path"]),
            }
            before = working()
            began = time.perf_counter()
            reply = server.post("/api/answers", {**who, "answers": [answer]})
            if reply["questions"]:
                look(reply["questions"][0]["image"])
            session.waits.append(time.perf_counter() - began)
            session.states.append(before if working() == before else "")
            session.answers += 1
            if on_answer is not None:
                on_answer(session.answers)
        session.state = server.get("/api/state")
        return session


class Connection:
    """One connection to the server, kept open as a browser would."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        if parts.hostname is None:
            raise SpinalError(f"{link}: not a link to a page")
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        token = parse_qs(parts.query).get("token")
        self._headers = {"Authorization": f"Bearer {token[0]}"} if token else {}

    def get(self, path: str) -> dict[str, Any]:
        """A JSON object."""
        return json.loads(self.get_bytes(path))

    def get_bytes(self, path: str) -> bytes:
        """The content; empty for an image that cannot be shown."""
        return self._send("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a JSON object, and get one."""
        return json.loads(self._send("POST", path, json.dumps(body)))

    def _send(self, method: str, path: str, body: str | None = None) -> bytes:
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        for attempt in range(2):
            try:
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
                break
            except ConnectionError:  # the server closes connections after a few idle seconds
                self._connection.close()
                if attempt:
                    raise
        content = response.read()
        if response.status == 404:
            return b""
        if response.status >= 400:
            raise SpinalError(f"the server replied: {response.status} {content.decode()[:200]}")
        return content
