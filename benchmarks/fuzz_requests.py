"""The requests that `benchmarks.fuzz` sends to each endpoint, and that the page never sends."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fuzz_targets import make_project, make_text_project

#: Method and path of each endpoint, with the place of a number or name as in the routes.
ENDPOINTS = (
    "GET /", "GET /static/{name}", "GET /image/{number:int}", "GET /thumb/{number:int}",
    "GET /text/{number:int}", "GET /api/state", "GET /api/guesses", "GET /api/outliers",
    "GET /api/mistakes", "GET /api/disagreements", "GET /api/agreement", "GET /api/problems",
    "POST /api/next", "POST /api/answers", "POST /api/undo", "GET /api/browse",
    "GET /api/about/{number:int}", "GET /api/neighbours/{number:int}", "GET /api/dashboard",
    "GET /api/classes", "POST /api/classes", "POST /api/classes/undo", "POST /api/export",
    "GET /api/export/{key}", "POST /api/try", "POST /api/notes",
)  # fmt: skip


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


def body(rng: random.Random) -> dict[str, Any]:
    """What a page could send to any endpoint, with a few values replaced."""
    given = {"token": f"t{rng.randrange(9)}", "image": rng.randint(1, 8), "label": "cat",
             "reason": rng.choice(("guess", "browse", "unasked"))}  # fmt: skip
    whole = {
        "client": "c", "person": rng.choice(("ada", "eve")), "n": rng.randrange(4),
        "answers": [given], "tokens": [given["token"]],
        "kind": rng.choice(("add", "rename", "merge", "remove", "key", "colour")),
        "name": rng.choice(("cat", "dog", "x")), "target": rng.choice(("dog", "y", "k", "#0f8a80")),
        "images": [given["image"]], "flagged": rng.choice((True, False, None)),
        "note": rng.choice(("blurred", "", None)),
    }  # fmt: skip
    if rng.random() < 0.001:  # each takes seconds
        whole["to"] = rng.choice(("csv", "coco", "model"))
    for _ in range(rng.randrange(4)):
        rng.choice((whole, given))[rng.choice([*whole, *given, "predictions"])] = value(rng)
    return whole


def request(
    client: Any, endpoint: str, rng: random.Random, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    """Send a request; an exception of the server is raised here."""
    method, path = endpoint.split()
    names = ("app.js", "..%2fserver.py", "%00", "x")
    path = path.replace("{name}", rng.choice(names)).replace("{key}", rng.choice(names))
    numbers = (1, 2, 3, 7, 0, 99, -1, 2**63, "x", "%2e%2e", "1%00")
    path = path.replace("{number:int}", str(rng.choice(numbers)))
    if rng.random() < 0.05:
        method = rng.choice(("GET", "POST", "PUT", "HEAD", "OPTIONS"))
    wild = (1, -1, 0.5, "", "red", "cat", "9" * 30, "\0", "é", "inf", "nan", "x" * 300)
    known = ("token", "label", "start", "n", "person", "name", "state", "predicted", "low", "high",
             "order", "like", "marked")  # fmt: skip
    real = {"state": ("labelled", "skipped", "disputed", "problem"), "order": ("recent", "unsure"),
            "start": (0, 3), "n": (5,), "low": (0, 0.5), "high": (1,), "like": (1, 7)}  # fmt: skip
    query = {
        name: str(rng.choice(real[name] if name in real and rng.random() < 0.7 else wild))
        for name in rng.sample(known, rng.randrange(5))
    }
    headers = {"content-type": "application/json"}
    if rng.random() < 0.2:
        name = rng.choice(("origin", "host", "cookie", "sec-fetch-site", "content-length", "range"))
        headers[name] = rng.choice(
            ("http://[", "http://[::1", "", 'x="', "-1", "null", "9" * 30, "a;b")
        )
    content = None
    if method == "POST":
        content = json.dumps(body(rng)).encode()
        if endpoint.endswith("/try"):
            headers["content-type"] = "application/octet-stream"
        if rng.random() < 0.2:
            content = damage(content, rng)
    reply = client.request(method, path, content=content, headers=headers, params=query)
    if reply.status_code >= 500:
        raise AssertionError(f"{path}: status {reply.status_code}: {reply.text[:200]}")


def run_endpoints(
    endpoints: Sequence[str],
    folder: Path,
    seed: str,
    cases: Iterable[int],
    attempt: Callable[[int, Callable[[], Any]], None],
    damage: Callable[[bytes, random.Random], bytes],
) -> None:
    """Requests for endpoints in turn, to one server.

    Args:
        endpoints: some of `ENDPOINTS`.
        folder: an empty folder.
        seed: of the requests.
        cases: their numbers.
        attempt: runs a case.
        damage: changes bytes.
    """
    from starlette.testclient import TestClient

    from spinal.label.store.project import open_project
    from spinal.label.web.security import Rules
    from spinal.label.web.server import Server

    (make_text_project if "/text/" in endpoints[0] else make_project)(folder)
    project = open_project(folder)
    server = Server(project, Rules("127.0.0.1", 8421, None))
    with TestClient(server.app, base_url="http://127.0.0.1:8421") as client:
        for case in cases:
            rng, endpoint = random.Random(f"{seed}-{case}"), endpoints[case % len(endpoints)]
            attempt(case, partial(request, client, endpoint, rng, damage))
    server.close()
    project.close()
