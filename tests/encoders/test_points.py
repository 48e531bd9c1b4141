"""Images of datasets as features."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spinal import load_dataset
from spinal.data import Points
from spinal.encoders import ImageEncoder, encode
from spinal.encoders.points import EncodedPoints, encode_dataset
from spinal.encoders.vectors import Vectors
from spinal.errors import SpinalError
from spinal.experiments import load_protocol
from spinal.experiments.runs import Run, execute


def test_features_are_computed_once_and_only_where_they_are_needed(
    tmp_path: Path, pixels: ImageEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = load_dataset("digits").train_images[:300]
    expected = encode(pixels, images)
    calls: list[int] = []
    embed = pixels.embed
    monkeypatch.setattr(pixels, "embed", lambda x: calls.append(len(x)) or embed(x))
    points = EncodedPoints(images, pixels, tmp_path)
    assert isinstance(points, Points)
    assert points.shape == (300, 768)
    chosen = np.array([7, 299, 7, 0])
    np.testing.assert_array_equal(points[chosen], expected[chosen])
    assert sum(calls) == 3
    np.testing.assert_array_equal(points[np.arange(300)], expected)
    assert sum(calls) == len(np.unique(images, axis=0))
    another = EncodedPoints(images[::-1], pixels, tmp_path)
    np.testing.assert_array_equal(another[np.arange(300)], expected[::-1])
    assert sum(calls) == len(np.unique(images, axis=0))


def test_a_dataset_keeps_its_labels(
    tmp_path: Path, pixels: ImageEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINAL_CACHE", str(tmp_path))
    digits = load_dataset("digits")
    features = encode_dataset(digits, pixels)
    assert features.train_images.shape == (len(digits.train_labels), 768)
    assert features.test_labels is digits.test_labels
    row = features.test_images[np.array([5])]
    np.testing.assert_array_equal(row, encode(pixels, digits.test_images[5:6]))


def test_a_protocol_can_name_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tiny.toml").write_text(
        "initial = 30\nrounds = 1\nbatch = 5\npool = 60\ntest = 50\n"
        '[network]\nname = "pixels@8"\nwidth = 0.25\n'
        "training = {min-steps = 60, max-steps = 60}\n"
    )
    protocol = load_protocol(tmp_path / "tiny.toml")
    run = Run(protocol, "spn-cnn", "max-entropy", 0, tmp_path / "runs")
    execute(run)
    first, last = run.rounds()
    assert first.accuracy > 0.5  # 0.1 by chance
    assert last.labels == 35
    learner = json.loads((run.folder / "checkpoint" / "learner.json").read_text())
    assert learner["network"][0] == "dense"
    # Standardising looks at 2,000 training points, here at all; of the test, only 50 were needed.
    (folder,) = (tmp_path / "cache" / "features").iterdir()
    assert folder.name.startswith("pixels-8-")
    assert len(Vectors(folder, 192)) == 1297 + 50

    (tmp_path / "typo.toml").write_text('[network]\nname = "efficientnet-lite"\n')
    with pytest.raises(SpinalError, match="did you mean 'efficientnet-lite"):
        load_protocol(tmp_path / "typo.toml")
