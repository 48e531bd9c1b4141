"""A user's module as a `Network`, split after the layer whose output is the feature vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor, fx, nn

from spinal.errors import suggestion
from spinal.networks.evaluation import evaluating
from spinal.networks.graphs import cut, dependents, trace
from spinal.networks.inputs import Preprocess
from spinal.networks.network import Network, NetworkError

#: Layers that belong to the head, so that features are deterministic.
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_BY_HAND = "cut it by hand: Network(features, head)"


class _First(nn.Module):
    """The first value of a module that returns a tuple."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)[0]


def wrap(
    module: nn.Module,
    layer: str | None,
    input_shape: Sequence[int],
    *,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    pretrained: bool = True,
) -> Network:
    """Make a `Network` from a module, given the layer whose output is the feature vector.

    All calls after that layer become the head. The head must need nothing but the features, and the
    module must make the same calls for every input; otherwise an error is raised. The weights are
    shared with ``module``, not copied.

    Examples:
        >>> from torch import nn
        >>> layers = [nn.Flatten(), nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 3)]
        >>> network = wrap(nn.Sequential(*layers), "2", (8, 8, 1))  # the output of the ReLU
        >>> network.features(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 20])

    Args:
        module: maps ``[N, channels, height, width]`` or ``[N, D]`` to logits ``[N, C]``.
        layer: a name from ``module.named_modules()``; its output is the feature vector. If None,
            features are the input of the last `nn.Linear` that is called, before any dropout.
        input_shape: shape of one stored point, (H, W, C) or (D,).
        mean: mean of each channel (in units of 0..1) or feature, for standardisation as in the
            module's own training. Without ``mean`` and ``std``, both are computed from the pool.
        std: standard deviation of each channel or feature.
        pretrained: whether training from scratch starts from the current weights; if not, it starts
            from random ones.

    Raises:
        NetworkError: if there is no such layer, or the module cannot be split there.
    """
    parts = dict(module.named_modules())
    if layer is not None and (layer not in parts or layer == ""):
        hint = suggestion(layer, [name for name in parts if name])
        raise NetworkError(f"no module {layer!r}: {hint}")
    try:
        traced = trace(module, whole=[] if layer is None else [parts[layer]])
    except NetworkError as error:
        raise NetworkError(f"{error}: {_BY_HAND}") from error
    if layer is None:
        where, below = "its last dense layer", _last_dense(traced)
    else:
        where, below = layer, _after(traced, layer, parts)
    body, head = cut(traced, below)
    inputs = [node.name for node in head.graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise NetworkError(f"the part after {where} needs {len(inputs)} values: {_BY_HAND}")
    shape = tuple(int(n) for n in input_shape)
    preprocess = Preprocess(shape)
    if mean is not None or std is not None:
        preprocess.set(
            [0.0] * shape[-1] if mean is None else mean, [1.0] * shape[-1] if std is None else std
        )
    network = Network(
        _First(body), head, preprocess=preprocess, pretrained=pretrained, origin=module
    )
    _check(network, module, where)
    return network


def _after(traced: fx.GraphModule, layer: str, parts: dict[str, nn.Module]) -> set[fx.Node]:
    """All calls that depend on the output of ``layer``."""
    calls = [node for node in traced.graph.nodes if _is_call_of(node, layer, parts)]
    if len(calls) != 1:
        raise NetworkError(f"{layer} is called {len(calls)} times, not once: {_BY_HAND}")
    below = dependents(traced, calls) - set(calls)
    used = {node for late in below for node in late.all_input_nodes if node not in below}
    if others := sorted(node.name for node in used - set(calls) if node.op != "get_attr"):
        raise NetworkError(
            f"after {layer}, the module needs more than its output ({', '.join(others)}): "
            f"{_BY_HAND}"
        )
    return below


def _last_dense(traced: fx.GraphModule) -> set[fx.Node]:
    """The last call of a dense layer, the dropout before it, and all calls that follow."""
    called = dict(traced.named_modules())
    dense = [
        node
        for node in traced.graph.nodes
        if node.op == "call_module" and isinstance(called[str(node.target)], nn.Linear)
    ]
    if not dense:
        raise NetworkError(f"it calls no nn.Linear: {_BY_HAND}")
    first = dense[-1]
    while isinstance(called.get(str(first.all_input_nodes[0].target)), _DROPOUTS):
        first = first.all_input_nodes[0]
    return dependents(traced, [first])


def _is_call_of(node: fx.Node, name: str, parts: dict[str, nn.Module]) -> bool:
    return node.op == "call_module" and parts.get(str(node.target)) is parts[name]


def _check(network: Network, module: nn.Module, layer: str) -> None:
    """Compare the logits with the module's own, for two random points."""
    shape = network.preprocess.input_shape or ()
    sizes = shape if len(shape) == 1 else (shape[2], shape[0], shape[1])
    x = torch.rand(2, *sizes, generator=torch.Generator().manual_seed(0)).to(network.device)
    try:
        with evaluating(module):
            expected = module(x)
    except RuntimeError as error:
        raise NetworkError(
            f"the module does not take points of shape {tuple(shape)} ({error}): give its "
            "input_shape"
        ) from error
    try:
        with evaluating(network):
            logits = network(x)
    except RuntimeError as error:
        raise NetworkError(
            f"what follows {layer} does not take its output as a vector for each point "
            f"({error}): name a later module, or {_BY_HAND}"
        ) from error
    if expected.ndim != 2 or not torch.allclose(logits, expected, rtol=1e-4, atol=1e-5):
        raise NetworkError(f"cut at {layer}, the module gives other results: {_BY_HAND}")
