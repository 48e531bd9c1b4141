"""A pool of vectors with ties, a learner that was fitted to some of them, and files of both."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spinal import ActiveLearner, Pool

CLASSES = ["ant", "bee", "cat"]


@dataclass(frozen=True)
class Example:
    """Vectors ``[N, D]``, of which the last third repeats the first; a learner, and its folder."""

    points: np.ndarray
    learner: ActiveLearner
    model: Path

    def scores(self) -> np.ndarray:
        """One minus the margin between the two most probable classes, by the learner itself."""
        p = np.sort(self.learner.predict_proba(self.points).astype(float), 1)
        return 1 - (p[:, -1] - p[:, -2])


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6))
    points = (centres[np.arange(400) % 3] + 1.5 * rng.normal(size=(400, 6))).astype(np.float32)
    points = np.concatenate([points, points[:200]])
    learner = ActiveLearner(Pool(points, CLASSES), "dense", "logistic", "margin", seed=0)
    first = np.arange(200, 240)
    learner.tell(first, first % 3)
    learner.fit()
    model = tmp_path_factory.mktemp("model") / "learner"
    learner.save(model)
    return Example(points, learner, model)


def write_npy(folder: Path, points: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(points, 3)):
        np.save(folder / f"{i}.npy", part)


def write_npz(folder: Path, points: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(points, 3)):
        np.savez_compressed(folder / f"{i}.npz", points=part)


def write_parquet(folder: Path, points: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(points, 3)):
        table = pd.DataFrame({"z": list(part), "name": [f"{i}-{j}" for j in range(len(part))]})
        table.to_parquet(folder / f"{i}.parquet", row_group_size=70)


def write_numbers(folder: Path, points: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(points, 3)):
        pd.DataFrame(part, columns=list("abcdef")).to_parquet(folder / f"{i}.parquet")


def write_tar(folder: Path, points: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(points, 3)):
        with tarfile.open(folder / f"{i}.tar", "w") as tar:
            for j, row in enumerate(part):
                content = io.BytesIO()
                np.save(content, row)
                add(tar, f"{j:04d}.npy", content.getvalue())
                add(tar, f"{j:04d}.json", b"{}")


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


FORMATS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "npy": write_npy,
    "npz": write_npz,
    "parquet": write_parquet,
    "numbers": write_numbers,
    "tar": write_tar,
}
