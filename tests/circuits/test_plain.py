"""The arrays of a circuit, against the circuit: computed here from their definition alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spinal.circuits import DGCSPN, Circuit, RandomSPN
from spinal.errors import StructureError


def log_joint(arrays: dict[str, np.ndarray], z: np.ndarray) -> np.ndarray:
    """``log p(z, c) [C]`` of one point, cell by cell, in float64."""
    u = (z - arrays["shift"]) / arrays["stretch"]
    padded = np.append(u, 0.0)
    cells = []
    for a, variables in enumerate(arrays["slots"]):
        x = padded[variables]
        log_x = arrays["eta.0"][a, 0] + x @ arrays["eta.1"][a]
        if "eta.2" in arrays:
            log_x = log_x + (x * x) @ arrays["eta.2"][a]
        cells.append(log_x)
    for i in range(sum(name.startswith("weights.") for name in arrays)):
        products = [
            sum(cells[child] for child in children if child < len(cells))
            for children in arrays[f"children.{i}"]
        ]
        cells = [
            np.logaddexp.reduce(log_x[:, None] + np.log(weights), axis=0)
            for log_x, weights in zip(products, arrays[f"weights.{i}"], strict=True)
        ]
    return np.logaddexp.reduce(cells) + arrays["log_prior"] + (u * u) @ arrays["square"]


@pytest.mark.parametrize(
    "circuit",
    [
        DGCSPN((4, 8), 5, seed=1),
        DGCSPN(n_features=30, n_classes=3, learn_scale=True, scale=0.7),
        RandomSPN(13, 4, depth=3, repetitions=3),
    ],
    ids=["grid", "padded, scales learned", "random"],
)
def test_arrays_say_what_the_circuit_says(circuit: Circuit) -> None:
    z = 3 + 2 * torch.randn(20, circuit.n_features, generator=torch.Generator().manual_seed(0))
    circuit.double().standardise(z.double())
    circuit.set_prior(torch.arange(1.0, circuit.n_classes + 1) / 10)
    arrays = {name: array.numpy() for name, array in circuit.to_plain_arrays().items()}
    expected = circuit(z.double()).detach().numpy()
    np.testing.assert_allclose([log_joint(arrays, x) for x in z.double().numpy()], expected)


def test_weights_that_may_vanish_are_refused() -> None:
    with pytest.raises(StructureError, match="without a floor"):
        DGCSPN((4, 4), 2, weight_floor=0.0).to_plain_arrays()
