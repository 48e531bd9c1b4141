"""A network cut before its first dropout layer: what comes before runs once, the rest K times."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, fx, nn

from spinal.networks.evaluation import evaluating
from spinal.networks.graphs import cut, dependents, trace
from spinal.networks.network import NetworkError, derived_seed

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class FixedDropout(nn.Module):
    """Dropout in evaluation: sample k drops the same units of every point, in every batch.

    So sample k is one network, and what it says of two points can be compared.

    Args:
        rate: of the dropout layer that it stands for.
        channels: drop whole channels, as `nn.Dropout2d` does.
        number: which dropout layer of the network it is; each has its own masks.
    """

    def __init__(self, rate: float, *, channels: bool = False, number: int = 0) -> None:
        super().__init__()
        self.rate, self.channels, self.number = rate, channels, number
        self.seed, self.sample = 0, 0

    def forward(self, x: Tensor) -> Tensor:
        """Drop units of ``x [N, ...]``; what is kept is scaled up."""
        shape = (1, x.size(1), *[1] * (x.ndim - 2)) if self.channels else (1, *x.shape[1:])
        seed = derived_seed(derived_seed(self.seed, self.sample), self.number)
        drawn = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
        return x * ((drawn >= self.rate).to(x) / (1 - self.rate)).to(x.device)


class DropoutSplit:
    """``tail(*trunk(x))`` is the network with its dropout on, in evaluation.

    Attributes:
        trunk: ``x`` to a tuple of tensors that no dropout has touched.
        tail: these to logits ``[N, C]``; the same masks for every point, see `FixedDropout`.
    """

    def __init__(self, trunk: nn.Module, tail: nn.Module) -> None:
        self.trunk, self.tail = trunk, tail
        self._layers = [m for m in tail.modules() if isinstance(m, FixedDropout)]
        self._copies = not _goes_to_dropout_only(tail)

    def samples(self, x: Tensor, samples: int, *, seed: int = 0) -> Iterator[Tensor]:
        """Logits ``[N, C]`` of ``x``, the network's input, under ``samples`` sets of masks.

        The masks depend on ``seed`` and the number of the sample alone, not on the points.
        """
        with evaluating(self.trunk), evaluating(self.tail):
            values = self.trunk(x)
            for sample in range(samples):
                for layer in self._layers:
                    layer.seed, layer.sample = seed, sample
                yield self.tail(*(value.clone() for value in values) if self._copies else values)


def split_at_dropout(network: nn.Module) -> DropoutSplit:
    """Cut a network where dropout begins, wherever that is.

    The weights are shared with the network. A network whose calls depend on values cannot be cut:
    then all of it (a copy) is the tail, which is right, but slower.

    Raises:
        NetworkError: if there is no dropout in it.
    """
    try:
        traced = trace(network)
    except NetworkError:
        tail = _fixed(copy.deepcopy(network))
        return DropoutSplit(_Tuple(), tail)
    roots = [
        node
        for node in traced.graph.nodes
        if node.op == "call_module" and _is_active(traced.get_submodule(str(node.target)))
    ]
    if not roots:
        raise NetworkError(_NONE)
    trunk, tail = cut(traced, dependents(traced, roots))
    return DropoutSplit(trunk, _fixed(tail))


_NONE = "the network has no dropout layer (nn.Dropout with a rate above 0), so nothing to sample"


class _Tuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (x,)


def _goes_to_dropout_only(tail: nn.Module) -> bool:
    """Whether no other layer sees the values of the trunk, and might change them in place."""
    return isinstance(tail, fx.GraphModule) and all(
        user.op == "call_module" and isinstance(tail.get_submodule(str(user.target)), FixedDropout)
        for node in tail.graph.nodes
        if node.op == "placeholder"
        for user in node.users
    )


def _is_active(module: nn.Module) -> bool:
    return isinstance(module, _DROPOUTS) and 0 < module.p < 1


def _fixed(module: nn.Module) -> nn.Module:
    """Put a `FixedDropout` in the place of each dropout layer."""
    places = [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent.named_children()
        if _is_active(child)
    ]
    if not places:
        raise NetworkError(_NONE)
    for number, (parent, name, child) in enumerate(places):
        channels = not isinstance(child, nn.Dropout)
        setattr(parent, name, FixedDropout(child.p, channels=channels, number=number))  # type: ignore[arg-type]
    return module
