"""What other systems refuse is not asked for; these tests refuse it here as well."""

from __future__ import annotations

import ast
import builtins
import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import spinal
from spinal.encoders.cache import vectors_of
from spinal.experiments import Run, load_protocol
from spinal.files import replacing_folder, write_text
from spinal.label.exports.folders import folder_names
from spinal.label.learning.worker import let_the_page_go_first
from spinal.label.store.decoder import limit_memory

PACKAGE = Path(spinal.__file__).parent


@pytest.fixture
def no_flush_of_reading(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As on Windows, fsync refuses files that are open for reading; the flushed ones are listed."""
    flushed = []

    def fsync(descriptor: int) -> None:
        try:
            os.write(descriptor, b"")
        except OSError as error:
            raise OSError(errno.EBADF, "Bad file descriptor") from error
        flushed.append(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return flushed


def test_files_are_flushed_where_reading_is_not_enough(
    tmp_path: Path, no_flush_of_reading: list[int]
) -> None:
    with (tmp_path / "read").open("wb"):
        pass
    with (tmp_path / "read").open("rb") as file, pytest.raises(OSError, match="Bad file"):
        os.fsync(file.fileno())  # the refusal itself
    write_text(tmp_path / "a.txt", "text")
    with replacing_folder(tmp_path / "folder") as partial:
        (partial / "b.txt").write_text("more")
    assert (tmp_path / "folder" / "b.txt").read_text() == "more"
    assert len(no_flush_of_reading) >= 3  # a.txt, b.txt and the checksums


def test_memory_is_limited_only_where_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_resource(name: str, *rest: Any) -> Any:
        if name == "resource":  # Windows
            raise ImportError(name)
        return real(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without_resource)
        limit_memory(1 << 40)

    def refuse(*_: Any) -> None:
        raise ValueError("current limit exceeds maximum limit")  # macOS

    fake = SimpleNamespace(RLIMIT_AS=0, setrlimit=refuse)
    monkeypatch.setitem(sys.modules, "resource", fake)
    limit_memory(1 << 40)


def test_priority_is_lowered_only_where_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOENT, "no /proc")

    monkeypatch.delattr(os, "nice")  # Windows
    monkeypatch.setattr(Path, "write_text", refuse)
    let_the_page_go_first()


@pytest.mark.parametrize("name", ["timm:resnet18", "a/b\\c:d*?", "NET.py:Make"])
def test_no_file_name_has_what_windows_forbids(name: str, tmp_path: Path) -> None:
    encoder = SimpleNamespace(name=name, fingerprint="0", width=2)
    run = Run(load_protocol("digits"), "spn-cnn", name, 0, tmp_path)
    names = [vectors_of(tmp_path, encoder).folder.name, run.folder.parent.name]
    names += folder_names([name]).values()
    for text in names:
        assert not set(text) & set('<>:"/\\|?*')


def attributes_of(module: str) -> set[str]:
    """The attributes of a module that the package uses."""
    used = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == module:
                    used.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == module:
                used.update(alias.name for alias in node.names)
    return used


def test_no_fork_and_no_signal_that_is_not_everywhere() -> None:
    everywhere = {"SIGINT", "SIGTERM", "signal", "raise_signal", "Signals"}
    assert attributes_of("signal") <= everywhere
    only_posix = {"fork", "forkpty", "killpg", "setsid", "getuid", "geteuid", "mkfifo", "uname"}
    assert attributes_of("os") & only_posix == set()
    text = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert "import fcntl" not in text
    assert '"fork"' not in text
