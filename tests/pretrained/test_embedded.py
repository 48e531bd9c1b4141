"""Images of datasets as features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinal import load_dataset
from spinal.data import Points
from spinal.pretrained import Backbone
from spinal.pretrained.embedded import EmbeddedImages, embedded


def test_features_are_computed_once_and_only_where_they_are_needed(
    tmp_path: Path, pixels: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = load_dataset("digits").train_images[:300]
    expected = pixels.compute(images)
    calls: list[int] = []
    compute = pixels.compute
    monkeypatch.setattr(pixels, "compute", lambda x: calls.append(len(x)) or compute(x))
    points = EmbeddedImages(images, pixels, tmp_path)
    assert isinstance(points, Points)
    assert points.shape == (300, 768)
    chosen = np.array([7, 299, 7, 0])
    np.testing.assert_array_equal(points[chosen], expected[chosen])
    assert sum(calls) == 3
    np.testing.assert_array_equal(points[np.arange(300)], expected)
    assert sum(calls) == len(np.unique(images, axis=0))
    another = EmbeddedImages(images[::-1], pixels, tmp_path)
    np.testing.assert_array_equal(another[np.arange(300)], expected[::-1])
    assert sum(calls) == len(np.unique(images, axis=0))


def test_a_dataset_keeps_its_labels(
    tmp_path: Path, pixels: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINAL_CACHE", str(tmp_path))
    digits = load_dataset("digits")
    features = embedded(digits, pixels)
    assert features.train_images.shape == (len(digits.train_labels), 768)
    assert features.test_labels is digits.test_labels
    row = features.test_images[np.array([5])]
    np.testing.assert_array_equal(row, pixels.compute(digits.test_images[5:6]))
