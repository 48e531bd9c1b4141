"""A network split before its first dropout layer: the first part runs once, the rest K times."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor, fx, nn

from spinal.networks.evaluation import evaluating
from spinal.networks.graphs import cut, dependents, trace
from spinal.networks.network import Network, NetworkError, derived_seed
from spinal.networks.residual import Mirrored

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class FixedDropout(nn.Module):
    """Dropout in evaluation: sample k drops the same units of every point, in every batch.

    So sample k is one network, and its predictions for two points can be compared.

    Args:
        rate: rate of the dropout layer that it replaces.
        channels: drop whole channels, as `nn.Dropout2d` does.
        number: position among the dropout layers of the network; each has its own masks.
    """

    def __init__(self, rate: float, *, channels: bool = False, number: int = 0) -> None:
        super().__init__()
        self.rate, self.channels, self.number = rate, channels, number
        self.seed, self.sample = 0, 0

    def forward(self, x: Tensor) -> Tensor:
        """Drop units of ``x [N, ...]`` and scale up the others."""
        shape = (1, x.size(1), *[1] * (x.ndim - 2)) if self.channels else (1, *x.shape[1:])
        return x * (self.kept(shape).to(x) / (1 - self.rate)).to(x.device)

    def kept(self, shape: tuple[int, ...]) -> Tensor:
        """Which units of this sample are kept, as booleans."""
        seed = derived_seed(derived_seed(self.seed, self.sample), self.number)
        drawn = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
        return drawn >= self.rate


class DroppedLinear(nn.Module):
    """``linear(dropout(x))``, with a matrix product over only the inputs that are kept.

    At a rate of 0.5 the product is half as large, and ``x`` is not copied.
    """

    def __init__(self, linear: nn.Linear, dropout: FixedDropout) -> None:
        super().__init__()
        self.linear, self.dropout = linear, dropout
        self._inputs: dict[tuple[int, int], Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        """``x [N, D]``, or ``[N, ..., D]``, for which the dropout layer is called as usual."""
        if x.ndim != 2:
            return self.linear(self.dropout(x))
        inputs = self._kept_inputs(x)
        x_k, weight_k = x.index_select(1, inputs), self.linear.weight.index_select(1, inputs)
        scale = 1 / (1 - self.dropout.rate)
        if self.linear.bias is None:
            return x_k @ (weight_k * scale).T
        return torch.addmm(self.linear.bias, x_k, weight_k.T, alpha=scale)

    def _kept_inputs(self, x: Tensor) -> Tensor:
        """Positions of the inputs that this sample keeps; drawn once, for all batches."""
        sample = self.dropout.seed, self.dropout.sample
        if sample not in self._inputs:
            is_kept = self.dropout.kept((1, x.size(1)))
            self._inputs[sample] = is_kept.flatten().nonzero().flatten().to(x.device)
        return self._inputs[sample]


class DropoutSplit:
    """A network in evaluation mode, but with dropout, as ``tail(*trunk(x))``.

    Attributes:
        trunk: maps ``x`` to a tuple of tensors, without dropout.
        tail: maps these tensors to logits ``[N, C]``, with the same dropout masks for all points;
            see `FixedDropout`.
    """

    def __init__(self, trunk: nn.Module, tail: nn.Module) -> None:
        self.trunk, self.tail = trunk, tail
        self._layers = [m for m in tail.modules() if isinstance(m, FixedDropout)]
        self._copies = not _goes_to_dropout_only(tail)

    @property
    def is_random(self) -> bool:
        """Whether any units are dropped; if not, all samples are the network itself."""
        return bool(self._layers)

    def samples(self, x: Tensor, samples: int, *, seed: int = 0) -> Iterator[Tensor]:
        """Logits ``[N, C]`` of the network's input ``x``, for each of ``samples`` sets of masks.

        The masks depend only on ``seed`` and the number of the sample, not on the points.
        """
        with evaluating(self.trunk), evaluating(self.tail):
            values = self.trunk(x)
            for sample in range(samples):
                for layer in self._layers:
                    layer.seed, layer.sample = seed, sample
                yield self.tail(*(value.clone() for value in values) if self._copies else values)


def split_at_dropout(network: nn.Module) -> DropoutSplit:
    """Split a network before its first dropout layer.

    The weights are shared with the network. A network that cannot be traced cannot be split: the
    tail is then a copy of the complete network, which gives the same results, but more slowly.

    Raises:
        NetworkError: if it has no dropout layer. Layers with a rate of 0 are allowed; they drop
            nothing, see `DropoutSplit.is_random`.
    """
    # These take another path in training, so calls inside them cannot be traced.
    whole = [m for m in network.modules() if isinstance(m, Mirrored) and not _has_dropout(m)]
    try:
        traced = trace(network, whole)
    except NetworkError:
        _require_dropout(network.modules())
        return DropoutSplit(_Tuple(), _fixed(copy.deepcopy(network)))
    called = {node: _called(traced, node) for node in traced.graph.nodes}
    _require_dropout(called.values())
    roots = [node for node, module in called.items() if _is_active(module)]
    if not roots:
        return DropoutSplit(_Tuple(), traced)
    for root in roots:
        _flatten_first(traced, root)
    trunk, tail = cut(traced, dependents(traced, roots))
    return DropoutSplit(trunk, _joined(_fixed(tail)))


def _has_dropout(module: nn.Module) -> bool:
    return any(isinstance(each, _DROPOUTS) for each in module.modules())


def set_dropout(network: Network, rate: float | Sequence[float]) -> None:
    """Change the rates of dropout layers.

    Args:
        network: changed in place.
        rate: one rate for the last two dropout layers (the LeNet has no others; of the five in its
            VGG, the paper tuned these two), or one rate for each layer, from first to last.

    Raises:
        NetworkError: if there is no dropout layer, or the number of rates is wrong.
    """
    _require_dropout(network.modules())
    layers = [module for module in network.modules() if isinstance(module, _DROPOUTS)]
    if not isinstance(rate, Sequence):
        layers, rates = layers[-2:], [rate] * len(layers[-2:])
    elif len(rate) != len(layers):
        raise NetworkError(f"{len(rate)} dropout rates for {len(layers)} layers: give one for each")
    elif network.config.get("name", "vgg") != "vgg":
        raise NetworkError(f"dropout has one rate in {network.config['name']}, not {len(rate)}")
    else:
        rates = list(rate)
    for layer, its_rate in zip(layers, rates, strict=True):
        layer.p = its_rate
    # The network is rebuilt from these arguments when it is read from a file.
    if "dropout" in network.config:
        network.config["dropout"] = rates if isinstance(rate, Sequence) else rate
    if network.config.get("input_dropout") and rate:  # with 0, it would be built without the layer
        network.config["input_dropout"] = rate


def _require_dropout(modules: Iterable[nn.Module | None]) -> None:
    if not any(isinstance(module, _DROPOUTS) and module.p < 1 for module in modules):
        raise NetworkError("the network has no dropout layer (such as nn.Dropout): add one")


class _Tuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (x,)


def _goes_to_dropout_only(tail: nn.Module) -> bool:
    """Whether only dropout layers, which change nothing in place, use the trunk's values."""
    return isinstance(tail, fx.GraphModule) and all(
        isinstance(_called(tail, user), FixedDropout | DroppedLinear)
        for node in tail.graph.nodes
        if node.op == "placeholder"
        for user in node.users
    )


def _called(traced: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The module that a node calls, if it calls one."""
    return traced.get_submodule(str(node.target)) if node.op == "call_module" else None


def _flatten_first(traced: fx.GraphModule, dropout: fx.Node) -> None:
    """Replace ``flatten(dropout(x))`` by ``dropout(flatten(x))``, so that the trunk flattens once.

    Only for dropout of single units, where both give the same result.
    """
    users = list(dropout.users)
    if not isinstance(_called(traced, dropout), nn.Dropout) or len(users) != 1:
        return
    flatten, source = users[0], dropout.all_input_nodes[0]
    module = _called(traced, flatten)
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        flatten.replace_all_uses_with(dropout)
        flatten.replace_input_with(dropout, source)
        dropout.replace_input_with(source, flatten)
        flatten.append(dropout)


def _joined(tail: fx.GraphModule) -> fx.GraphModule:
    """Replace each dropout layer and the dense layer after it by a `DroppedLinear`."""
    calls = Counter(str(node.target) for node in tail.graph.nodes if node.op == "call_module")
    for node in list(tail.graph.nodes):
        dropout, users = _called(tail, node), list(node.users)
        if not isinstance(dropout, FixedDropout) or dropout.channels or len(users) != 1:
            continue
        name = str(users[0].target)
        linear = _called(tail, users[0])
        if type(linear) is nn.Linear and calls[name] == 1:
            tail.add_submodule(name, DroppedLinear(linear, dropout))
            users[0].replace_input_with(node, node.all_input_nodes[0])
            tail.graph.erase_node(node)
    tail.delete_all_unused_submodules()
    tail.recompile()
    return tail


def _is_active(module: nn.Module | None) -> bool:
    return isinstance(module, _DROPOUTS) and 0 < module.p < 1


SomeModule = TypeVar("SomeModule", bound=nn.Module)


def _fixed(module: SomeModule) -> SomeModule:
    """Replace each dropout layer with a positive rate by a `FixedDropout`."""
    places = [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent.named_children()
        if _is_active(child)
    ]
    for number, (parent, name, child) in enumerate(places):
        channels = not isinstance(child, nn.Dropout)
        setattr(parent, name, FixedDropout(child.p, channels=channels, number=number))  # type: ignore[arg-type]
    return module
