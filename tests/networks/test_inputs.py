"""From stored points to inputs: scale, mean and deviation, order of axes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spinal.data import as_points
from spinal.errors import DataError
from spinal.networks import Preprocess
from spinal.networks.augmentation import augment, cut_out


def test_images_are_standardised_by_channel_and_channels_come_first() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (50, 6, 5, 3), np.uint8)
    images[..., 1] //= 4
    preprocess = Preprocess()
    preprocess.fit(images)
    x = preprocess(images)
    scaled = images / 255
    expected = (scaled - scaled.mean((0, 1, 2))) / scaled.std((0, 1, 2))
    np.testing.assert_allclose(x.numpy(), expected.transpose(0, 3, 1, 2), atol=1e-5)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_feature_vectors_are_standardised_and_constants_only_centred() -> None:
    vectors = np.random.default_rng(0).normal(3, 2, (100, 4)).astype(np.float32)
    vectors[:, 2] = 1e4
    preprocess = Preprocess((4,))
    preprocess.fit(as_points(vectors))
    x = preprocess(vectors)
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(0, correction=0), [1, 1, 0, 1], atol=1e-5)


def test_another_number_of_channels_is_refused() -> None:
    preprocess = Preprocess()
    preprocess.set([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    with pytest.raises(DataError, match=r"1 channels or features, but .* with 3"):
        preprocess(np.zeros((2, 4, 4, 1), np.uint8))


def test_shifts_move_images_as_a_whole() -> None:
    image = torch.zeros(1, 16, 16, 1, dtype=torch.uint8)
    image[0, 8, 7] = 255
    batch = image.expand(200, -1, -1, -1)
    moved = augment(batch, "shift", torch.Generator().manual_seed(0))
    at = moved.squeeze(-1).flatten(1).argmax(1)
    assert (moved.flatten(1).sum(1, dtype=torch.long) == 255).all()
    assert set((at // 16).tolist()) == set(range(6, 11))
    assert set((at % 16).tolist()) == set(range(5, 10))
    assert augment(batch, "none", torch.Generator()) is batch


def test_flips_are_left_for_right() -> None:
    image = torch.zeros(1, 16, 16, 1, dtype=torch.uint8)
    image[0, 6, 3] = 255
    flipped = augment(image.expand(50, -1, -1, -1), "flip", torch.Generator().manual_seed(0))
    at = flipped.flatten(1).argmax(1)
    assert set(at.tolist()) == {6 * 16 + 3, 6 * 16 + 12}


def test_shifted_and_flipped() -> None:
    image = torch.zeros(1, 16, 16, 1, dtype=torch.uint8)
    image[0, 6, 3] = 255
    moved = augment(image.expand(500, -1, -1, -1), "shift-flip", torch.Generator().manual_seed(0))
    at = moved.flatten(1).argmax(1)
    assert set((at // 16).tolist()) == set(range(4, 9))
    assert set((at % 16).tolist()) == set(range(1, 6)) | set(range(10, 15))


def test_cutout_blanks_one_square_with_the_mean_colour() -> None:
    batch = torch.zeros(200, 16, 24, 2, dtype=torch.uint8)
    batch[:, ::2] = 100  # the mean is 50
    changed = cut_out(batch, 0.25, torch.Generator().manual_seed(0))
    blank = (changed == 50).all(-1)
    assert torch.equal(changed[~blank], batch[~blank])
    rows, columns = blank.any(2).sum(1), blank.any(1).sum(1)
    assert torch.equal(blank.sum((1, 2)), rows * columns)  # a rectangle: cut off at the edges
    assert (rows.max(), columns.max(), rows.min(), columns.min()) == (4, 4, 2, 2)
    assert blank.any(0).all()  # anywhere
    assert cut_out(batch, 0.0, torch.Generator()) is batch
