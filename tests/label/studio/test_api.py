"""The client for Label Studio: who gets to see the token, and what is said when something fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spinal.errors import DataError
from spinal.label.studio import api
from spinal.label.studio.api import StudioAPI, StudioError


class Server:
    """Answers as told, and remembers with which authorisation it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, str | None]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.seen.append((self.path, self.headers.get("Authorization")))
                status, headers, body = server.answers.get(self.path, (404, {}, b"nothing"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    both = Server(), Server()
    yield both
    for server in both:
        server.http.shutdown()
        server.http.server_close()


def test_only_label_studio_sees_the_token(servers: tuple[Server, Server]) -> None:
    studio, other = servers
    api = StudioAPI(studio.url + "/", "secret")
    studio.answers["/data/a.png"] = (200, {}, b"A")
    other.answers["/b.png"] = (200, {}, b"B")
    assert api.image("/data/a.png") == api.image(f"{studio.url}/data/a.png") == b"A"
    assert api.image(f"{other.url}/b.png") == b"B"
    studio.answers["/data/moved.png"] = (302, {"Location": f"{other.url}/b.png"}, b"")
    assert api.image("/data/moved.png") == b"B"
    studio.answers["/api/projects/1/"] = (302, {"Location": f"{other.url}/b.png"}, b"")
    with pytest.raises(StudioError, match="does not respond like Label Studio"):
        api.project(1)
    assert {token for _, token in studio.seen} == {"Token secret"}
    assert {token for _, token in other.seen} == {None}


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/y", "s3://bucket/a.png"])
def test_images_come_by_http_only(address: str) -> None:
    with pytest.raises(DataError, match="only http and https"):
        StudioAPI("http://127.0.0.1:1", "secret").image(address)


def test_images_that_are_too_large(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    studio, _ = servers
    monkeypatch.setattr(api, "MAX_BYTES", 10)
    studio.answers["/a.png"] = (200, {}, b"x" * 11)
    with pytest.raises(DataError, match="more than 10 bytes"):
        StudioAPI(studio.url, "secret").image("/a.png")
    with pytest.raises(DataError, match="404"):
        StudioAPI(studio.url, "secret").image("/b.png")


def test_what_is_said_when_it_fails(servers: tuple[Server, Server]) -> None:
    studio, _ = servers
    api = StudioAPI(studio.url, "secret")
    studio.answers["/api/projects/1/"] = (403, {}, b'{"detail": "Not yours."}')
    with pytest.raises(StudioError, match=r"403, Not yours\..*LABEL_STUDIO_TOKEN"):
        api.project(1)
    studio.answers["/api/projects/1/"] = (200, {}, b"<html>")
    with pytest.raises(StudioError, match="does not respond like Label Studio"):
        api.project(1)
    with pytest.raises(StudioError, match="cannot be reached"):
        StudioAPI("http://127.0.0.1:1", "secret").project(1)
    with pytest.raises(StudioError, match="not an address"):
        StudioAPI("localhost:8080", "secret")


def test_a_personal_token_buys_short_lived_ones(servers: tuple[Server, Server]) -> None:
    studio, _ = servers
    api = StudioAPI(studio.url, "aa.bb.cc")
    studio.answers["/api/token/refresh/"] = (200, {}, b'{"access": "first"}')
    studio.answers["/api/x"] = (200, {}, b"1")
    assert api.call("GET", "/api/x") == 1
    # When it has run out, another is bought, once.
    studio.answers["/api/x"] = (401, {}, b'{"detail": "Expired."}')
    studio.answers["/api/token/refresh/"] = (200, {}, b'{"access": "second"}')
    with pytest.raises(StudioError, match="401, Expired"):
        api.call("GET", "/api/x")
    assert studio.seen == [
        ("/api/token/refresh/", None),
        ("/api/x", "Bearer first"),
        ("/api/x", "Bearer first"),
        ("/api/token/refresh/", None),
        ("/api/x", "Bearer second"),
    ]
