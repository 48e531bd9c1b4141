"""A network in two parts: ``features(x)``, on which an SPN is trained, and ``head(z)``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spinal.errors import SpinalError
from spinal.networks.inputs import Preprocess
from spinal.networks.residual import ResidualBlock

_MEANS_OF_A_BLOCK = [ResidualBlock, nn.AdaptiveAvgPool2d, nn.Flatten]


class NetworkError(SpinalError, ValueError):
    """A network cannot be built, split, trained or applied as requested."""


@dataclass(frozen=True)
class LastLayer:
    """The last layer of `Network.features`, which computes ``relu(weight @ below(x) + bias)``.

    Attributes:
        below: the modules before it, in order.
        weight: ``[F, D]``.
        bias: ``[F]``.
    """

    below: list[nn.Module]
    weight: Tensor
    bias: Tensor

    @property
    def is_only(self) -> bool:
        """Whether there are no layers before it."""
        return all(isinstance(module, nn.Flatten | nn.Dropout) for module in self.below)


class Network(nn.Module):
    """A classifier with an accessible feature vector: ``forward(x) == head(features(x))``.

    Args:
        body: maps the input, ``[N, channels, height, width]`` or ``[N, D]``, to ``[N, F]`` (or to
            a tensor that flattens to it).
        head: maps ``[N, F]`` to logits ``[N, C]``. Dropout before the last layer belongs here, so
            that features are deterministic.
        preprocess: turns stored points into the input of ``body``.
        config: the arguments of `spinal.networks.build_network` for this network, saved with the
            weights by `spinal.networks.save`. Empty for a network that was not built by name.
        pretrained: whether training from scratch starts from the current weights; if not, it starts
            from random ones.
        origin: the module that was split into ``body`` and ``head``, if there is one. It shares its
            weights with them, and is reset when training starts from scratch.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        *,
        preprocess: Preprocess | None = None,
        config: dict[str, Any] | None = None,
        pretrained: bool = False,
        origin: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.preprocess = Preprocess() if preprocess is None else preprocess
        self.body = body
        self.head = head
        if (weights := next(self.parameters(), None)) is not None:
            self.preprocess.to(weights.device)
        self.config = dict(config or {})
        # In a tuple, the origin is not a submodule, so its weights are not listed twice.
        self._sources = (body, head) if origin is None else (origin,)
        self._brought = _copied(self._sources) if pretrained else None
        # Pools are stored as NHWC. Viewed as NCHW they have this format: batches are not copied.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.preprocess.mean.device

    def to_input(self, batch: NDArray | Tensor) -> Tensor:
        """The input of `forward` from stored points, uint8 ``[N, H, W, C]`` or ``[N, D]``."""
        return self.preprocess(batch)

    def features(self, x: Tensor) -> Tensor:
        """The feature vectors ``[N, F]``."""
        return self.body(x).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """The logits ``[N, C]``."""
        return self.head(self.features(x))

    def restart(self, seed: int) -> None:
        """Reset the weights, but not `preprocess`.

        Convolutions and dense layers are initialised as in Keras, which the paper used: Glorot
        uniform weights and zero biases. With few labels this is better than torch's default. Other
        layers use their ``reset_parameters``. A ``pretrained`` network returns to the weights that
        it was constructed with.

        Args:
            seed: for the random weights.
        """
        if self._brought is not None:
            for source, state in zip(self._sources, self._brought, strict=True):
                source.load_state_dict(state)
            return
        with seeded(seed):
            for source in self._sources:
                for name, module in source.named_modules():
                    _reset(name, module)

    def last_layer(self) -> LastLayer:
        """Split `features` before its last dense layer, for an export in plain operations.

        A batch norm between dense layer and ReLU is folded into weight and bias, with its running
        statistics. A body that ends in means over a residual block has no such layer. These means
        are not negative, so the identity with a ReLU takes its place.

        Raises:
            NetworkError: if ``body`` ends in something else.
        """
        modules = list(self.body.children())
        if [type(module) for module in modules[-3:]] == _MEANS_OF_A_BLOCK:
            weight, _ = self.linear_head()
            identity = torch.eye(weight.size(1), dtype=weight.dtype, device=weight.device)
            return LastLayer(modules, identity, torch.zeros_like(identity[0]))
        norm = next((m for m in modules[-2:-1] if isinstance(m, nn.BatchNorm1d)), None)
        if norm is not None:
            modules.remove(norm)
        if [type(module) for module in modules[-2:]] != [nn.Linear, nn.ReLU]:
            raise NetworkError("a network whose features do not end in a dense layer and a ReLU")
        dense = modules[-2]
        assert isinstance(dense, nn.Linear)
        weight = dense.weight.detach()
        bias = torch.zeros_like(weight[:, 0]) if dense.bias is None else dense.bias.detach()
        if norm is not None:
            assert norm.running_mean is not None
            assert norm.running_var is not None
            scale = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
            weight, bias = scale[:, None] * weight, scale * (bias - norm.running_mean) + norm.bias
        return LastLayer(modules[:-2], weight, bias.detach())

    def linear_head(self) -> tuple[Tensor, Tensor]:
        """Weight ``[C, F]`` and bias ``[C]`` of the logits, for an export in plain operations.

        Raises:
            NetworkError: if ``head`` is not one dense layer.
        """
        layers = [m for m in self.head.modules() if not isinstance(m, nn.Sequential | nn.Dropout)]
        dense = layers[0] if len(layers) == 1 else None
        if not isinstance(dense, nn.Linear):
            raise NetworkError("a network whose head is not one dense layer")
        weight, bias = dense.weight.detach(), dense.bias
        return weight, torch.zeros_like(weight[:, 0]) if bias is None else bias.detach()


def _reset(name: str, module: nn.Module) -> None:
    reset = getattr(module, "reset_parameters", getattr(module, "_reset_parameters", None))
    if isinstance(module, nn.modules.conv._ConvNd | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif reset is not None:
        reset()
    elif any(True for _ in module.parameters(recurse=False)):
        raise NetworkError(
            f"{name or 'the network'} ({type(module).__name__}) has weights, but no "
            "reset_parameters() to reset them: add one, or give pretrained=True"
        )


def _copied(modules: Iterable[nn.Module]) -> tuple[dict[str, Tensor], ...]:
    return tuple(copy.deepcopy(module.state_dict()) for module in modules)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generators inside the ``with`` block, and restore them afterwards.

    Layers draw initial weights, and dropout draws masks, only from the global generators.
    """
    device = torch.device("cpu") if device is None else device
    mps = torch.mps.get_rng_state() if device.type == "mps" else None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        elif mps is not None:
            torch.mps.manual_seed(seed)
        try:
            yield
        finally:
            if mps is not None:
                torch.mps.set_rng_state(mps)


def choose_device(name: str = "auto") -> torch.device:
    """The device of this name; ``auto`` is an accelerator if there is one."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def derived_seed(seed: int, purpose: int) -> int:
    """A seed for one of several purposes, so that their random numbers are independent."""
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)[0] >> 1)
