"""Any module that the user brings, cut at the module whose output is the feature vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx, nn

from spinal.errors import suggestion
from spinal.networks.evaluation import evaluating
from spinal.networks.graphs import cut, dependents, trace
from spinal.networks.inputs import Preprocess
from spinal.networks.network import Network, NetworkError

#: Layers that belong to the head, so that features are the same in every pass.
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_BY_HAND = "cut it by hand: Network(features, head)"


class _First(nn.Module):
    """The only value of a module that gives a tuple of one."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)[0]


def wrap(
    module: nn.Module,
    features: str | None,
    input_shape: Sequence[int],
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    pretrained: bool = True,
) -> Network:
    """Make a `Network` of a module by naming the part whose output is the feature vector.

    What is called after that part becomes the head. This works where the head needs nothing but
    the features, and the module makes the same calls for every input; else, an error says so. The
    weights are shared with ``module``, not copied.

    Examples:
        >>> from torch import nn
        >>> layers = [nn.Flatten(), nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 3)]
        >>> network = wrap(nn.Sequential(*layers), "2", (8, 8, 1))  # the output of the ReLU
        >>> network.features(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 20])

    Args:
        module: takes ``[N, channels, height, width]`` or ``[N, D]``, gives logits ``[N, C]``.
        features: a name from ``module.named_modules()``. None: the input of the last `nn.Linear`
            that is called, without the dropout before it.
        input_shape: of one point, as stored: (H, W, C) or (D,).
        mean: by channel (in units of 0..1) or feature, that the module was trained with. If None,
            the pool's.
        std: the same for the standard deviation.
        pretrained: training from scratch starts from the weights as they are now; False: from
            random ones.

    Raises:
        NetworkError: if there is no such part, or the module cannot be cut there.
    """
    parts = dict(module.named_modules())
    if features is not None and (features not in parts or features == ""):
        hint = suggestion(features, [name for name in parts if name])
        raise NetworkError(f"no module {features!r}: {hint}")
    try:
        traced = trace(module, whole=[] if features is None else [parts[features]])
    except NetworkError as error:
        raise NetworkError(f"{error}: {_BY_HAND}") from error
    if features is None:
        where, below = "its last dense layer", _last_dense(traced)
    else:
        where, below = features, _after(traced, features, parts)
    body, head = cut(traced, below)
    inputs = [node.name for node in head.graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise NetworkError(f"the part after {where} needs {len(inputs)} values: {_BY_HAND}")
    shape = tuple(int(n) for n in input_shape)
    preprocess = Preprocess(shape)
    if mean is not None or std is not None:
        preprocess.set(mean or [0.0] * shape[-1], std or [1.0] * shape[-1])
    network = Network(
        _First(body), head, preprocess=preprocess, pretrained=pretrained, origin=module
    )
    _check(network, module, where)
    return network


def _after(traced: fx.GraphModule, features: str, parts: dict[str, nn.Module]) -> set[fx.Node]:
    """All calls that depend on the output of the part ``features``."""
    calls = [node for node in traced.graph.nodes if _is_call_of(node, features, parts)]
    if len(calls) != 1:
        raise NetworkError(f"{features} is called {len(calls)} times, not once: {_BY_HAND}")
    below = dependents(traced, calls) - set(calls)
    used = {node for late in below for node in late.all_input_nodes if node not in below}
    if others := sorted(node.name for node in used - set(calls) if node.op != "get_attr"):
        raise NetworkError(
            f"after {features}, the module needs more than its output ({', '.join(others)}): "
            f"{_BY_HAND}"
        )
    return below


def _last_dense(traced: fx.GraphModule) -> set[fx.Node]:
    """The last call of a dense layer, the dropout before it, and all that follows."""
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


def _check(network: Network, module: nn.Module, features: str) -> None:
    """Compare with the module itself, for two random points."""
    shape = network.preprocess.input_shape or ()
    sizes = shape if len(shape) == 1 else (shape[2], shape[0], shape[1])
    x = torch.rand(2, *sizes, generator=torch.Generator().manual_seed(0)).to(network.device)
    with evaluating(module):
        expected = module(x)
    try:
        with evaluating(network):
            found = network(x)
    except RuntimeError as error:
        raise NetworkError(
            f"what follows {features} does not take its output as a vector for each point "
            f"({error}): name a later module, or {_BY_HAND}"
        ) from error
    if expected.ndim != 2 or not torch.allclose(found, expected, rtol=1e-4, atol=1e-5):
        raise NetworkError(f"cut at {features}, the module gives other results: {_BY_HAND}")
