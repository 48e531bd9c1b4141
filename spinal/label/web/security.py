"""Access control, checked for every request before it is handled.

- A page of another site must not reach the server through a name that resolves to this machine (DNS
  rebinding): the ``Host`` header must be a name of this machine.
- A page of another site must not post to the server or embed its images: ``Origin`` and
  ``Sec-Fetch-Site``, which pages cannot set, must show that the request comes from spinal's page.
- Except on loopback, every request needs a token: first in the link, then in a cookie.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spinal.errors import SpinalError
from spinal.files import replacing

MAX_BODY = 1 << 20
#: The path that images and texts may be sent to, and their maximum size.
UPLOAD, MAX_UPLOAD = "/api/try", 1 << 26
#: Characters of a token: 24 random bytes.
TOKEN_LENGTH = 32
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RefusedError(SpinalError):
    """A refused request, with an HTTP status and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Rules:
    """Which requests are allowed.

    Attributes:
        host: the address that the server listens on.
        port: the port that it listens on; part of the cookie's name, so that servers differ.
        token: the required token; None on loopback, which other machines cannot reach.

    Raises:
        SpinalError: if the token is shorter than `TOKEN_LENGTH`, or missing although needed.
    """

    host: str
    port: int
    token: str | None

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise SpinalError(f"other machines can reach {self.host}: a token is needed")
        if self.token is not None and len(self.token) < TOKEN_LENGTH:
            raise SpinalError(f"a token of {len(self.token)} characters is too short")

    @property
    def cookie(self) -> str:
        """The name of the cookie that holds the token."""
        return f"spinal-{self.port}"

    def check(self, request: Request) -> None:
        """Let a request pass, or raise `RefusedError`."""
        self._check_host(request.headers)
        self._check_site(request)
        if self.token is not None and not self._has_token(request):
            raise RefusedError(
                403, "the token is missing: open the link that `spinal label` printed"
            )
        if request.method == "POST":
            self._check_body(request)
        elif request.method not in ("GET", "HEAD"):
            raise RefusedError(405, f"{request.method} is not supported")

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        try:
            name = urlsplit(f"//{hosts[0]}").hostname if len(hosts) == 1 else None
        except ValueError:
            name = None
        if name is None or not self._is_here(name):
            raise RefusedError(403, "this is not the name of the machine that spinal runs on")

    def _is_here(self, name: str) -> bool:
        if name in LOOPBACK:
            return True
        if is_loopback(self.host):
            return False
        # A rebinding attack needs a host name of the attacker; a bare address is safe.
        return _is_address(name) or name == self.host.lower() or name in _own_names()

    def _check_site(self, request: Request) -> None:
        headers = request.headers
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != headers["host"]:
            raise RefusedError(403, "a page of another site may not do this")
        opened = (
            request.method == "GET"
            and request.url.path == "/"
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not opened:
            raise RefusedError(403, "a page of another site may not do this")

    def _has_token(self, request: Request) -> bool:
        shown = [
            request.query_params.get("token", "") if request.url.path == "/" else "",
            request.headers.get("authorization", "").removeprefix("Bearer "),
        ]
        try:
            for cookies in request.headers.getlist("cookie"):
                morsel = SimpleCookie(cookies).get(self.cookie)
                shown.append(morsel.value if morsel else "")
        except CookieError:
            pass
        token = str(self.token).encode()
        # The time of a comparison does not depend on how much of the token is right.
        return any(hmac.compare_digest(text.encode(), token) for text in shown)

    def _check_body(self, request: Request) -> None:
        kind, most = "application/json", MAX_BODY
        if request.url.path == UPLOAD:
            kind, most = "application/octet-stream", MAX_UPLOAD
        # A page of another site cannot send these types without a preflight, which is refused.
        if request.headers.get("content-type", "").partition(";")[0].strip() != kind:
            raise RefusedError(415, "send JSON" if most == MAX_BODY else f"send {kind}")
        length = request.headers.get("content-length", "")
        if not length.isdecimal():
            raise RefusedError(411, "send a Content-Length")
        if int(length) > most:
            raise RefusedError(413, f"more than {most:,} bytes")


class Guard:
    """Checks requests by `Rules`, and adds security headers to responses."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self.rules.check(Request(scope))
        except RefusedError as refusal:
            response = JSONResponse({"error": str(refusal)}, refusal.status)
            await response(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def keep_token(file: Path) -> str:
    """The token of a project, stored at the first call, so that links survive a restart.

    A file without a valid token is replaced: links with the old token no longer work.
    """
    with suppress(FileNotFoundError):
        token = file.read_text(encoding="utf-8", errors="replace").strip()
        if re.fullmatch(rf"[A-Za-z0-9_-]{{{TOKEN_LENGTH}}}", token):
            return token
    token = secrets.token_urlsafe(3 * TOKEN_LENGTH // 4)
    with replacing(file) as partial:
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        partial.write_text(token)
    return token


def _netloc(origin: str) -> str | None:
    """Host and port of an address; None if it is invalid."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


@cache
def _own_names() -> frozenset[str]:
    """Names of this machine on the network; the lookup can take seconds."""
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
