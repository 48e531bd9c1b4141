"""Circuits on disk come back as they were, and nothing else is taken for one."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from spinal.circuits import DGCSPN, Circuit, RandomSPN
from spinal.errors import FileFormatError, SpinalError
from spinal.files import sign_tensors


def test_a_saved_circuit_comes_back(spn: Circuit, points: torch.Tensor, tmp_path: Path) -> None:
    path = tmp_path / "circuit.safetensors"
    spn.leaf_dropout = spn._config["leaf_dropout"] = 0.25  # type: ignore[index]
    spn.save(path)
    back = Circuit.load(path)
    assert type(back) is type(spn)
    assert back.config() == spn.config()
    assert back.leaf_dropout == 0.25
    assert torch.equal(back(points), spn(points))
    assert list(tmp_path.iterdir()) == [path]


def test_the_wrong_structure_is_refused(tmp_path: Path) -> None:
    RandomSPN(4, 2).save(tmp_path / "c")
    with pytest.raises(SpinalError, match="RandomSPN, not a DGCSPN"):
        DGCSPN.load(tmp_path / "c")


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileFormatError, match="no such file"):
        Circuit.load(path)
    path.write_bytes(pickle.dumps({"weights": 1}))
    with pytest.raises(FileFormatError, match="not a safetensors file"):
        Circuit.load(path)
    save_file({"w": torch.zeros(2)}, path)
    with pytest.raises(FileFormatError, match="not a spinal circuit"):
        Circuit.load(path)
    RandomSPN(4, 2).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match="damaged"):
        Circuit.load(path)
    path.write_bytes(whole.replace(b'\\"n_features\\": 4', b'\\"n_features\\": 5'))
    with pytest.raises(FileFormatError, match="its checksum is not"):
        Circuit.load(path)
    with safe_open(path, framework="pt") as file:
        sign_tensors(path, file.metadata()["sha256"])
    with pytest.raises(FileFormatError, match="does not fit its header"):
        Circuit.load(path)
