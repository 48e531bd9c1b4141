"""Checksums of folders: a damaged, lost or added file is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spinal.errors import FileFormatError
from spinal.files import CHECKSUMS, verify_checksums, write_checksums


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "learner.json").write_text('{"rounds": 3}')
    (folder / "network.safetensors").write_bytes(np.random.default_rng(0).bytes(3_000_000))
    write_checksums(folder)
    return folder


def test_whole_folders_pass_and_no_others(folder: Path) -> None:
    verify_checksums(folder)
    write_checksums(folder)
    verify_checksums(folder)
    (folder / CHECKSUMS).unlink()
    with pytest.raises(FileFormatError, match="no SHA256SUMS"):
        verify_checksums(folder)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_the_file_is_what_sha256sum_checks(folder: Path) -> None:
    subprocess.run(["sha256sum", "--strict", "-c", CHECKSUMS], cwd=folder, check=True)


def test_any_damaged_byte_is_found(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for at in rng.integers(len(whole), size=40).tolist():
            damaged = bytearray(whole)
            damaged[at] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            with pytest.raises(FileFormatError, match=r"damaged .*; delete .*checkpoint"):
                verify_checksums(folder)
        path.write_bytes(whole)
    verify_checksums(folder)


def test_lost_and_added_files_are_named(folder: Path) -> None:
    (folder / "learner.json").rename(folder / "other.json")
    with pytest.raises(FileFormatError, match=r"learner\.json"):
        verify_checksums(folder)
    shutil.copy(folder / "other.json", folder / "learner.json")
    with pytest.raises(FileFormatError, match=r"other\.json"):
        verify_checksums(folder)
