"""The same weights and points give the values that libspn-keras, the paper's library, gives."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from spinal.circuits import DGCSPN

ROOT = Path(__file__).parents[2]
REFERENCE = json.loads((ROOT / "tests/fixtures/libspn_keras.json").read_text())


def load(name):
    """A module of the scripts that run in the peers' environments, where nothing is installed."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"benchmarks/peers/{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def parameters():
    module = load("parameters")
    yield module
    del sys.modules["parameters"]


@pytest.fixture(scope="module")
def set_parameters(parameters):
    yield load("circuit_spinal").set_parameters
    del sys.modules["circuit_spinal"]


def reference_model(case, parameters, set_parameters, **options):
    grid = tuple(case["grid"])
    spn = DGCSPN(grid, len(case["log_joint"][0]), **options)
    set_parameters(spn, parameters.draw_parameters(grid, REFERENCE["parameters_seed"]))
    z, _ = parameters.draw_points(grid, REFERENCE["points"], REFERENCE["points_seed"])
    return spn, torch.from_numpy(z), torch.tensor(case["log_joint"], dtype=torch.float64)


@pytest.mark.parametrize(
    "case", REFERENCE["cases"], ids=lambda case: "x".join(map(str, case["grid"]))
)
@pytest.mark.parametrize("options", [{}, {"weight_floor": 0.0}], ids=["floor", "no floor"])
def test_log_joint_is_that_of_libspn_keras(case, options, parameters, set_parameters):
    spn, z, expected = reference_model(case, parameters, set_parameters, **options)
    with torch.no_grad():
        assert (spn(z) - expected).abs().max() < 1e-4


@pytest.mark.parametrize(
    "case", REFERENCE["cases"], ids=lambda case: "x".join(map(str, case["grid"]))
)
def test_parity_would_see_a_wrong_order(case, parameters, set_parameters):
    spn, z, expected = reference_model(case, parameters, set_parameters)
    with torch.no_grad():
        for layer in spn.layers:
            logits = layer.sum.logits
            before = logits.clone()
            logits.copy_(before.roll(1, 0))  # every cell with the weights of its neighbour
            assert (spn(z) - expected).abs().max() > 1e-2
            logits.copy_(before)
