"""Downloads from a server on this machine: resumed, checked, there whole or not at all."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spinal.data import load_dataset
from spinal.data.download import download
from spinal.data.published import Download
from spinal.data.table import PUBLISHED
from spinal.errors import DataError, FileFormatError
from tests.data.files import Small, gzipped, md5

CONTENT = bytes(range(256)) * 1000
SUM = md5(CONTENT)


@dataclass
class Server:
    """What is served, how it misbehaves, and what it was asked for."""

    files: dict[str, bytes]
    cut_after: int | None = None  # bytes of a response after which the connection breaks
    cuts: int = 0  # how many responses are cut
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server({"data.bin": CONTENT})

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, wanted = self.path.strip("/"), self.headers.get("Range")
            state.asked.append((name, wanted))
            if name not in state.files:
                self.send_error(404)
                return
            content, start = state.files[name], 0
            if wanted and state.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            else:
                self.send_response(200)
            body = content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.cuts:
                state.cuts -= 1
                body = body[: state.cut_after]
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01}).start()
        state.address = f"http://127.0.0.1:{served.server_port}"
        yield state
        served.shutdown()


def test_a_file_arrives_whole_and_leaves_no_part(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "new" / "data.bin"
    download(f"{server.address}/data.bin", path, SUM)
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["data.bin"]


def test_a_broken_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.cut_after, server.cuts = 100_000, 2
    download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert [r for _, r in server.asked] == [None, "bytes=100000-", "bytes=200000-"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1234])
    download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert server.asked == [("data.bin", "bytes=1234-")]


def test_a_part_that_is_complete_needs_nothing_more(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_is_asked_for_all_of_it(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1234])
    download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"something else")
    download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=f"data.bin: MD5 {SUM}, expected {'0' * 32}"):
        download(f"{server.address}/data.bin", tmp_path / "data.bin", "0" * 32)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_makes_no_progress_is_given_up_and_its_part_kept(
    server: Server, tmp_path: Path
) -> None:
    server.cut_after, server.cuts = 0, 100
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:10])
    with pytest.raises(DataError, match="resumes where it stopped"):
        download(f"{server.address}/data.bin", tmp_path / "data.bin", SUM)
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:10]
    assert not (tmp_path / "data.bin").exists()


def test_a_missing_file_on_the_server_is_an_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone.bin cannot be downloaded \(Not Found\)"):
        download(f"{server.address}/gone.bin", tmp_path / "gone.bin", SUM)


def test_a_file_that_is_there_is_checked_and_not_fetched(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    download(f"{server.address}/data.bin", path, SUM)
    path.write_bytes(b"mine")
    with pytest.raises(FileFormatError, match="move it away"):
        download(f"{server.address}/data.bin", path, SUM)
    assert path.read_bytes() == b"mine"
    assert server.asked == []


@pytest.fixture
def small_mnist(server: Server, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A small MNIST, published on the server in place of the real one."""
    small = Small("mnist")
    server.files = gzipped(small.idx())
    downloads = tuple(Download(f"{server.address}/{n}", md5(c)) for n, c in server.files.items())
    monkeypatch.setitem(PUBLISHED, "mnist", small.published(small.idx(), downloads=downloads))
    return small


def test_a_dataset_is_downloaded_once(small_mnist: Small, server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        dataset = load_dataset("mnist", tmp_path)
        assert (dataset.train_images == small_mnist.train_images).all()
        assert dataset.source == str(tmp_path / "mnist")
    assert len(server.asked) == 4


def test_downloads_go_to_the_cache_by_default(small_mnist: Small, nowhere: Path) -> None:
    assert load_dataset("mnist").source == str(nowhere / "cache" / "mnist")


def test_without_a_network_it_is_said_what_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = (Download("http://127.0.0.1:9/train_32x32.mat", "0" * 32),)
    monkeypatch.setitem(PUBLISHED, "svhn", Small("svhn").published(downloads=downloads))
    with pytest.raises(
        DataError, match=rf"127.0.0.1:9/train_32x32.mat .*{tmp_path / 'svhn'}. SVHN"
    ):
        load_dataset("svhn", tmp_path)
