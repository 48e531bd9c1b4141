"""Every refusal that the server promises, tried."""

from __future__ import annotations

import inspect
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from spinal.commands.label import label
from spinal.errors import SpinalError
from spinal.label.store.project import Project
from spinal.label.web.security import MAX_BODY, Rules, is_loopback, keep_token
from tests.label.conftest import Connect
from tests.label.files import png_that_claims

ASK = {"client": "c", "person": "ada", "n": 1}
TOKEN = "a-token-that-nobody-ever-guesses"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8421", "127.0.0.1.evil.example", "localhost.", "", "[::1"],
)
def test_names_that_are_not_ours_are_refused(client: TestClient, host: str) -> None:
    """DNS rebinding: the browser believes that evil.example is this machine."""
    assert client.get("/", headers={"host": host}).status_code == 403
    assert client.get("/api/state", headers={"host": host}).status_code == 403
    assert client.get("/image/1", headers={"host": host}).status_code == 403
    assert client.post("/api/next", json=ASK, headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:8421", "[::1]:8421"])
def test_names_of_this_machine_are_let_in(client: TestClient, host: str) -> None:
    assert client.get("/api/state", headers={"host": host}).status_code == 200


def test_on_loopback_other_addresses_are_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "192.168.1.5:8421"}).status_code == 403


def test_two_host_headers_are_refused(client: TestClient) -> None:
    both = [("host", "127.0.0.1:8421"), ("host", "evil.example")]
    assert client.get("/api/state", headers=both).status_code == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://[",
        "http://[::1",
        "//",
        "",
        "http://127.0.0.1:9999",
        "http://127.0.0.1:8421.evil.example",
    ],
)
def test_posts_of_other_sites_are_refused(
    client: TestClient, project: Project, origin: str
) -> None:
    answer = {"token": "t", "image": 1, "label": "red"}
    body = {**ASK, "answers": [answer]}
    assert client.post("/api/answers", json=body, headers={"origin": origin}).status_code == 403
    assert project.store.answers() == []


def test_posts_of_our_own_page_are_let_in(client: TestClient) -> None:
    ours = {"origin": "http://127.0.0.1:8421", "sec-fetch-site": "same-origin"}
    assert client.post("/api/next", json=ASK, headers=ours).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_images_and_data_are_not_embedded_by_other_sites(client: TestClient, site: str) -> None:
    for path in ("/image/1", "/thumb/1", "/api/state", "/static/app.js"):
        assert client.get(path, headers={"sec-fetch-site": site}).status_code == 403
    framed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    assert client.get("/", headers=framed).status_code == 403
    opened = framed | {"sec-fetch-dest": "document"}  # somebody clicked on a link to the page
    assert client.get("/", headers=opened).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_forms_of_other_sites_are_refused(client: TestClient, kind: str) -> None:
    """A browser sends these types across sites without asking first."""
    posted = client.post("/api/next", content=b"{}", headers={"content-type": kind})
    assert posted.status_code == 415


def test_large_bodies_are_refused_unread(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    large = b" " * (MAX_BODY + 1)
    assert client.post("/api/next", content=large, headers=headers).status_code == 413
    parts = client.post("/api/next", content=iter([b"{", b"}"]), headers=headers)
    assert parts.status_code == 411


def test_other_methods_are_refused(client: TestClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.request(method, "/api/state").status_code == 405


def test_off_loopback_nothing_goes_without_the_token(connect: Connect, project: Project) -> None:
    client = connect("0.0.0.0", TOKEN, name="192.168.1.5")
    for path in ("/", "/?token=wrong", "/api/state", "/image/1", f"/image/1?token={TOKEN}"):
        refused = client.get(path)
        assert refused.status_code == 403, path
        assert TOKEN not in refused.text
    assert client.post("/api/next", json=ASK).status_code == 403
    assert "set-cookie" not in client.get("/?token=wrong").headers


def test_the_link_with_the_token_opens_the_rest_by_a_cookie(connect: Connect) -> None:
    client = connect("0.0.0.0", TOKEN, name="192.168.1.5")
    opened = client.get(f"/?token={TOKEN}")
    assert opened.status_code == 200
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/state").status_code == 200  # the client kept it
    assert client.get("/image/1").status_code == 200
    assert client.post("/api/next", json=ASK).status_code == 200


def test_a_program_shows_the_token_in_a_header(connect: Connect) -> None:
    client = connect("0.0.0.0", TOKEN, name="192.168.1.5")
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/state", headers=bearer).status_code == 200
    assert client.get("/api/state", headers={"authorization": "Bearer no"}).status_code == 403


def test_off_loopback_names_of_strangers_are_refused_even_with_the_token(connect: Connect) -> None:
    client = connect("0.0.0.0", TOKEN, name="evil.example")
    assert client.get(f"/?token={TOKEN}").status_code == 403


def test_tokens_are_random_kept_and_private(tmp_path: Path) -> None:
    first, second = keep_token(tmp_path / "a"), keep_token(tmp_path / "b")
    assert first != second
    assert len(first) == 32
    assert keep_token(tmp_path / "a") == first
    assert os.stat(tmp_path / "a").st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"\n", b"half-a-token", b"\0" * 32])
def test_a_token_file_without_a_whole_token_is_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o644)
    token = keep_token(file)
    assert len(token) == 32
    assert file.read_text() == token
    assert os.stat(file).st_mode & 0o077 == 0


@pytest.mark.parametrize("token", [None, "", "short"])
def test_without_a_whole_token_only_this_machine_is_served(token: str | None) -> None:
    with pytest.raises(SpinalError, match="token"):
        Rules("0.0.0.0", 8421, token)


def test_only_this_machine_is_served_by_default() -> None:
    assert inspect.signature(label).parameters["host"].default == "127.0.0.1"


def test_what_counts_as_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.5", "example.com")))


@pytest.mark.parametrize(
    "path",
    [
        "/image/../labels.sqlite",
        "/image/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/image/-1",
        "/image/1/../../secret",
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/static/index.html",
        "/static/..%5cserver.py",
        "/labels.sqlite",
        "/.spinal/labels.sqlite",
    ],
)
def test_only_files_of_the_project_are_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("route", ["image", "thumb"])
def test_links_that_lead_out_are_not_served(
    client: TestClient, project: Project, route: str
) -> None:
    Image.new("RGB", (8, 8)).save(project.folder.parent / "secret.png")
    (project.folder / "link.png").symlink_to("../secret.png")
    project.scan()
    number = next(row["id"] for row in project.store.images() if row["path"] == "link.png")
    refused = client.get(f"/{route}/{number}")
    assert refused.status_code == 404
    assert "leads out" in refused.json()["error"]
    assert [row["path"] for row in project.store.problems()] == ["link.png"]


def test_folders_that_lead_out_are_not_looked_into(client: TestClient, project: Project) -> None:
    outside, inside = project.folder.parent / "outside", project.folder / "inside"
    for folder in (outside, inside):
        folder.mkdir()
        Image.new("RGB", (8, 8)).save(folder / "a.png")
    (project.folder / "link").symlink_to(outside)
    assert project.scan() == 1
    number = next(row["id"] for row in project.store.images() if row["path"] == "inside/a.png")
    assert client.get(f"/image/{number}").status_code == 200
    (inside / "a.png").unlink()  # and one that leads out since it was found
    inside.rmdir()
    inside.symlink_to(outside)
    assert client.get(f"/image/{number}").status_code == 404


@pytest.mark.parametrize("route", ["image", "thumb"])
@pytest.mark.parametrize("pixels", [50_000, 9_000])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_images_that_are_too_large_or_lie_are_refused_undecoded(
    client: TestClient, project: Project, route: str, pixels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.folder / "image-0000.png").write_bytes(png_that_claims(pixels, pixels))

    def decoded(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("spinal.label.store.decoding.Decoders.to_jpeg", decoded)
    assert client.get(f"/{route}/1").status_code == 404
    assert [row["path"] for row in project.store.problems()] == ["image-0000.png"]


def test_an_svg_that_calls_itself_png_is_not_served(client: TestClient, project: Project) -> None:
    (project.folder / "image-0000.png").write_text("<svg onload='alert(1)'/>")
    refused = client.get("/image/1")
    assert refused.status_code == 404
    assert "json" in refused.headers["content-type"]


def test_pages_may_do_little(client: TestClient) -> None:
    for path in ("/", "/image/1", "/api/state", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_names_become_text_and_nothing_comes_from_elsewhere() -> None:
    """What the browser test tries with a hostile name, said of all of the page's code."""
    for file in files("spinal.label.web").joinpath("page").iterdir():
        text = file.read_text(encoding="utf-8")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
            assert forbidden not in text, f"{file.name}: {forbidden}"
        links = set(re.findall(r"https?://[^\s\"')]+", text))
        assert links <= {"http://www.w3.org/2000/svg"}, f"{file.name}: {links}"
        assert not re.search(r"<[^>]+\son\w+=|style=", text), f"{file.name}: inline code or style"


def test_nothing_is_unpickled(project: Project, client: TestClient) -> None:
    import numpy as np

    objects = np.array([{"a": 1}], dtype=object)
    with project.beliefs_file.open("wb") as file:
        np.savez(file, round=1, images=objects, probs=objects, log_density=objects,
                 checked=objects, checked_probs=objects)  # fmt: skip
    assert client.get("/api/outliers").json()["images"] == []
    assert not project.beliefs_file.exists()  # until the worker writes it again
