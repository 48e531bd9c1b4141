"""Features and logits in batches: the same as in one pass, the network left as it was."""

from __future__ import annotations

import numpy as np
import torch

from spinal.data import as_points
from spinal.networks import build_network, compute_features, predict_logits


def test_batches_give_what_one_pass_gives() -> None:
    images = np.random.default_rng(0).integers(0, 256, (23, 8, 8, 3), np.uint8)
    network = build_network("vgg", (8, 8, 3), 5, width=0.1)
    network.preprocess.fit(images)
    indices = np.array([20, 3, 3, 11, 0])
    done: list[tuple[int, int]] = []
    z = compute_features(
        network, as_points(images), indices, batch_size=2, on_batch=lambda *n: done.append(n)
    )
    assert network.training
    assert done == [(2, 5), (4, 5), (5, 5)]
    assert z.dtype == torch.float32
    assert not z.requires_grad
    network.eval()
    x = network.to_input(images[indices])
    with torch.no_grad():
        torch.testing.assert_close(z, network.features(x))
        torch.testing.assert_close(predict_logits(network, z, batch_size=3), network(x))
    assert compute_features(network, images).shape == (23, 48)


def test_no_points_give_no_features() -> None:
    network = build_network("dense", (4,), 3)
    z = compute_features(network, np.zeros((5, 4), np.float32), np.array([], np.int64))
    assert z.shape == (0, 128)
    assert predict_logits(network, z).shape == (0, 3)
