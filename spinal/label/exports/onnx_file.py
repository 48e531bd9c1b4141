"""Export of modules to ONNX files, whose outputs are checked."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spinal.errors import SpinalError

#: Maximum difference of probabilities from those of the learner or of another runtime. For
#: log-densities d, the difference is divided by 1 + abs(d).
TOLERANCE = 1e-4


class ExportError(SpinalError):
    """The classifier cannot be exported, or its predictions would differ."""


def write_onnx(
    module: nn.Module, sample: Tensor, name: str, path: Path, notes: dict[str, str]
) -> None:
    """Export a module with one input, with any number of rows, and compare the outputs."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch.onnx needs it
    except ImportError as error:
        raise ExportError(
            f"ONNX needs more packages: pip install 'spinal[onnx]' ({error})"
        ) from error
    # The exporter warns for each operator of torchvision if torchvision is missing.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    module = module.cpu().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings from torch itself
        program = torch.onnx.export(
            module, (sample,), dynamo=True, verbose=False, input_names=[name],
            output_names=["probabilities", "log_density"],
            dynamic_shapes=({0: torch.export.Dim("N")},),
        )  # fmt: skip
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, notes)
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for part in (sample, sample[:1]):
        with torch.inference_mode():
            expected = [output.numpy() for output in module(part)]
        outputs = session.run(["probabilities", "log_density"], {name: part.numpy()})
        check_equal(outputs, expected, "PyTorch")


def check_equal(computed: Sequence[NDArray], expected: Sequence[NDArray], whose: str) -> None:
    """Raise an error if probabilities or log-densities differ from those of ``whose``.

    Raises:
        ExportError: with the largest difference.
    """
    (probs, density), (expected_probs, expected_density) = computed, expected
    differences = {
        "a probability": np.abs(probs - expected_probs),
        "a log-density, relative to it": np.abs(density - expected_density)
        / (1 + np.abs(expected_density)),
    }
    for what, by_point in differences.items():
        if not by_point.max() <= TOLERANCE:
            raise ExportError(
                f"the exported classifier differs from {whose} by {by_point.max():.2g} in {what}"
            )
