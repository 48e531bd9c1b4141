r"""A blend as a few arrays, from which plain operations compute its predictions.

Features :math:`x`, scaled to length 1 if ``directed``, are mapped to the variables of the circuit,
to the logits of logistic regression and to the logits of the network by affine maps

.. math::
    (x - \mathrm{shift})\, \mathrm{weight} + \mathrm{bias} .

Classes without labels get a share of each softmax,
:math:`p_m = (1 - \sum_c \mathrm{unseen}_c) \operatorname{softmax} + \mathrm{unseen}`. A tree is
followed from its root, ``depth`` times: to the ``right`` if the node's ``feature`` is above its
``threshold``, otherwise to the ``left``; a leaf leads to itself. With the circuit's
:math:`p_0(c \mid x)`,

.. math::
    p(c \mid x) = w_0\, p_0(c \mid x) + \sum_{m > 0} w_m
      \frac{p_m(c \mid x)\, \mathrm{ratio}_c}{\sum_{c'} p_m(c' \mid x)\, \mathrm{ratio}_{c'}} .

With a ``power`` :math:`\beta`, it becomes
:math:`\mathrm{ratio}_c\, (p(c \mid x) / \mathrm{ratio}_c)^\beta`, normalised.

Names are ``part/array``. The parts are ``variables``, ``circuit`` (see `spinal.circuits.plain`),
``logistic``, ``trees``, ``network`` and ``mixture``, with ``weights`` in this order, ``ratio`` and
``power``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spinal.circuits import Circuit
from spinal.classifiers.priors import add_one

if TYPE_CHECKING:
    from spinal.classifiers.blend import Blend
    from spinal.classifiers.gaussian import Gaussian
    from spinal.classifiers.logistic import Logistic
    from spinal.classifiers.trees import Trees
    from spinal.classifiers.units import Coordinates


def blend_arrays(blend: Blend, head: tuple[Tensor, Tensor] | None) -> dict[str, Tensor]:
    """See `Blend.to_plain_arrays`."""
    ratio = blend.after / blend.before
    arrays = circuit_arrays(blend.gaussian.circuit, blend.weights, ratio)
    arrays |= _named("variables", _variables(blend.gaussian))
    if blend.power is not None:
        arrays["mixture/power"] = blend.power
    if blend.logistic is not None:
        arrays |= _named("logistic", _logistic(blend.logistic))
    if blend.trees is not None:
        arrays |= _named("trees", _trees(blend.trees))
    if blend.sharpness is not None:
        assert head is not None
        weight, bias = (blend.sharpness * tensor.cpu().double() for tensor in head)
        arrays |= _named("network", affine_arrays(weight.T, bias))
        arrays["network/unseen"] = torch.zeros_like(bias)
    return arrays


def circuit_arrays(circuit: Circuit, weights: Tensor, ratio: Tensor) -> dict[str, Tensor]:
    """The parts ``circuit`` and ``mixture``.

    Args:
        circuit: the first classifier of the mixture.
        weights: weights of all classifiers, ``[M]``.
        ratio: class frequencies of predictions divided by those of the labels, ``[C]``.
    """
    mixture = {"weights": weights, "ratio": ratio}
    return _named("circuit", circuit.to_plain_arrays()) | _named("mixture", mixture)


def affine_arrays(
    weight: Tensor, bias: Tensor, shift: Tensor | None = None, *, directed: bool = False
) -> dict[str, Tensor]:
    """The arrays of an affine map.

    Args:
        weight: ``[D, K]``.
        bias: ``[K]``.
        shift: ``[D]``; None for 0.
        directed: whether vectors are scaled to length 1 first.
    """
    shift = torch.zeros_like(weight[:, 0]) if shift is None else shift
    return {"directed": torch.tensor(directed), "shift": shift, "weight": weight, "bias": bias}


def _variables(gaussian: Gaussian) -> dict[str, Tensor]:
    return _after(gaussian.coordinates, gaussian.axes, -gaussian.centre @ gaussian.axes)


def _logistic(logistic: Logistic) -> dict[str, Tensor]:
    seen = logistic.counts > 0
    bias = torch.where(seen, logistic.bias, -torch.inf)
    arrays = _after(logistic.coordinates, logistic.weight, bias)
    return arrays | {"unseen": torch.where(seen, 0.0, add_one(logistic.counts))}


def _after(coordinates: Coordinates, weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
    """``coordinates(x) @ weight + bias`` as one affine map of x."""
    units = coordinates.units
    shift = units.shift + units.scale * coordinates.origin
    weight = (coordinates.axes / units.scale[:, None]) @ weight
    return affine_arrays(weight, bias, shift, directed=units.kind == "direction")


def _trees(trees: Trees) -> dict[str, Tensor]:
    is_leaf = trees.feature < 0
    itself = torch.arange(len(is_leaf))
    left, right = (torch.where(is_leaf, itself, child) for child in trees.children.T)
    depth, level = 0, trees.roots
    while not is_leaf[level].all():
        depth, level = depth + 1, torch.cat([left[level], right[level]]).unique()
    return {
        "roots": trees.roots,
        "feature": trees.feature.clamp_min(0),
        "threshold": trees.threshold,
        "left": left,
        "right": right,
        "depth": torch.tensor(depth),
        "probs": trees.probs,
        "prior": trees.prior,
    }


def _named(part: str, arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{part}/{name}": array for name, array in arrays.items()}
