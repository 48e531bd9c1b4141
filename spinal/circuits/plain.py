r"""A trained circuit as a few arrays, to be evaluated with plain matrix operations.

An export, such as an ONNX file, then needs none of the Python classes. With A cells, K components
and V variables per cell, a point :math:`z` is mapped to

.. math::
    u = (z - \mathrm{shift}) / \mathrm{stretch}, \qquad
    \log x_{ak} = \eta^0_{ak} + \sum_v \eta^1_{avk} u_v + \eta^2_{avk} u_v^2

where :math:`v` runs over the variables of cell :math:`a`. Each layer then multiplies cells and
mixes the channels of the products,

.. math::
    y_{ao} = \sum_i w_{aio} \prod_{j \in \mathrm{children}(a)} x_{ji} ,

and the last one has a channel for each class. Its cells are added up:

.. math::
    \log p(z, c) = \log \sum_a y_{ac} + \mathrm{log\_prior}_c + \sum_d \mathrm{square}_d u_d^2 .
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from spinal.circuits.mixed_leaves import MixedLeaves
from spinal.errors import StructureError

if TYPE_CHECKING:
    from spinal.circuits.circuit import Circuit


@torch.no_grad()
def to_plain_arrays(circuit: Circuit) -> dict[str, Tensor]:
    """See `Circuit.to_plain_arrays`."""
    if circuit.exact_logs:
        raise StructureError("a circuit without a floor under its weights cannot be exported")
    if isinstance(circuit.leaves, MixedLeaves):
        raise StructureError("a circuit with categorical leaves cannot be exported")
    leaves, theta = circuit.leaves, circuit.evaluate()
    linear, constant, *square = theta.natural.eta
    variables = leaves.variables.view(len(linear), leaves.variables.size(2))
    arrays = {
        "shift": leaves.shift + leaves.stretch * theta.natural.centre,
        "stretch": leaves.stretch,
        "square": theta.natural.common,
        "slots": torch.where(variables < 0, circuit.n_features, variables),
        "eta.0": constant.sum(1, keepdim=True),
        "eta.1": linear,
        "log_prior": theta.log_prior,
    }
    if square:
        arrays["eta.2"] = square[0]
    for i, layer in enumerate(circuit.layers):
        arrays[f"children.{i}"] = _indices(layer.product.parents(layer.cells))
        arrays[f"weights.{i}"] = layer.sum.weights()
    return {name: array.detach().cpu().contiguous() for name, array in arrays.items()}


def _indices(multiplied: Tensor) -> Tensor:
    """``[A', A]`` booleans as indices ``[A', J]``, padded with A."""
    rows = [row.nonzero().flatten() for row in multiplied]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=multiplied.size(1))
