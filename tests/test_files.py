"""Checksums of folders and of models: what is damaged, lost or added is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from spinal.errors import FileFormatError
from spinal.files import (
    CHECKSUMS,
    read_tensors,
    verify_checksums,
    write_checksums,
    write_tensors,
)


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


def test_no_flipped_bit_of_a_model_goes_unnoticed(tmp_path: Path) -> None:
    whole, flipped = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    tensors = {"a": torch.arange(40.0), "b": torch.tensor(3), "c": torch.ones(2, 3).bool()}
    write_tensors(whole, tensors, "spinal.test/1", {"n": 5})
    content = whole.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        flipped.write_bytes(changed)
        try:
            header, read = read_tensors(flipped, "spinal.test/1")
        except FileFormatError:
            continue
        # Only the word "sha256" itself can be damaged without a difference to the rest.
        assert b"sha256" not in changed
        assert header == {"n": 5}
        assert all(torch.equal(read[name], tensors[name]) for name in tensors)


def test_a_model_without_a_checksum_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(3)}, path, metadata={"format": "spinal.test/1", "header": "{}"})
    assert read_tensors(path, "spinal.test/1")[1]["a"].tolist() == [1, 1, 1]
