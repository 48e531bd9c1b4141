"""The trained classifier as a small module that needs nothing but torch and safetensors.

`spinal export PROJECT --to model` puts a copy of this file beside the weights; use it like this:

    import standalone
    classifier = standalone.load("classifier.safetensors")
    probabilities, log_density = classifier(features)    # float32 [N, D], by classifier.backbone
    names = [classifier.classes[i] for i in probabilities.argmax(1)]

Features ``[N, D]`` go through one dense layer to ``z [N, F]``; a sum-product network says how
probable each class is given ``z``, and how usual ``z`` is at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

FORMAT = "spinal.classifier/1"


class SumProduct(nn.Module):
    """A sum-product network over ``z [N, F]``, layer by layer, in plain operations.

    Values are pairs: ``x [cells, N, channels]`` and a log-scale ``m [cells, N]`` in float64 that
    the channels of a cell share; the value is ``x exp(m)``.

    Args:
        tensors: with A cells, K components, V variables of a cell

            - ``shift, stretch, square [F]``: ``u = (z - shift) / stretch``, and the coefficients
              of ``u^2`` that all components share;
            - ``slots [A, V]``: the variables of each cell, F where there are fewer;
            - ``eta.0 [A, 1, K]``, ``eta.1 [A, V, K]`` and, if scales were learned, ``eta.2``: the
              coefficients of 1, ``u`` and ``u^2`` in the log-density of each component;
            - ``children.i [A', J]``: the cells that each product of layer i multiplies, A where
              there are fewer; ``weights.i [A', inputs, outputs]``: of the sums above them;
            - ``log_prior [C]``.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = list(tensors)
        for name, tensor in tensors.items():
            self.register_buffer(_attribute(name), tensor)
        self.layers = sum(name.startswith("weights.") for name in tensors)

    def tensor(self, name: str) -> Tensor:
        """One of ``tensors``."""
        return getattr(self, _attribute(name))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """``log p(c | z) [N, C]`` and ``log p(z) [N]``."""
        t = self.tensor
        u = (z - t("shift")) / t("stretch")
        common = (u * u * t("square")).double().sum(1)
        padded = torch.cat([u, torch.zeros_like(u[:, :1])], 1)
        value = padded[:, t("slots")].transpose(0, 1)
        log_x = torch.bmm(value, t("eta.1")) + t("eta.0")
        if "eta.2" in self.names:
            log_x = log_x + torch.bmm(value * value, t("eta.2"))
        m = log_x.amax(-1)
        x, m = (log_x - m.unsqueeze(-1)).exp(), m.double()
        for i in range(self.layers):
            children = t(f"children.{i}")
            # One cell more, of value 1, stands for a child that is not there.
            x = torch.cat([x, torch.ones_like(x[:1])])[children].prod(1)
            m = torch.cat([m, torch.zeros_like(m[:1])])[children].sum(1)
            top = x.amax(-1)
            x, m = torch.bmm(x / top.unsqueeze(-1), t(f"weights.{i}")), m + top.log().double()
        top = m.amax(0)
        share = (m - top).exp().to(x.dtype)
        by_class = (x * share.unsqueeze(-1)).sum(0).log() + t("log_prior")
        log_density = by_class.logsumexp(1) + common + top
        return by_class.log_softmax(1), log_density.to(z.dtype)


class Classifier(nn.Module):
    """Features ``[N, D]`` to class probabilities ``[N, C]`` and log-density ``[N]``.

    Args:
        tensors: ``mean, std [D]``, ``dense [F, D]``, ``bias [F]``, and those of `SumProduct`.
        classes: the names of the C classes.
        backbone: what has to compute the features: its name, and the size of its images.
    """

    mean: Tensor
    std: Tensor
    dense: Tensor
    bias: Tensor

    def __init__(
        self, tensors: Mapping[str, Tensor], classes: Sequence[str], backbone: Mapping[str, object]
    ) -> None:
        super().__init__()
        rest = dict(tensors)
        for name in ("mean", "std", "dense", "bias"):
            self.register_buffer(name, rest.pop(name))
        self.circuit = SumProduct(rest)
        self.classes, self.backbone = tuple(classes), dict(backbone)
        self.eval()

    def tensors(self) -> dict[str, Tensor]:
        """What it was made from."""
        own = {name: getattr(self, name) for name in ("mean", "std", "dense", "bias")}
        return own | {name: self.circuit.tensor(name) for name in self.circuit.names}

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        x = (features - self.mean) / self.std
        z = torch.relu(nn.functional.linear(x, self.dense, self.bias))
        log_probs, log_density = self.circuit(z)
        return log_probs.exp(), log_density


def _attribute(name: str) -> str:
    return name.replace(".", "_")  # torch allows no dots


def load(path: str | Path) -> Classifier:
    """Read a classifier; nothing is unpickled."""
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            raise ValueError(f"{path}: not a classifier (format {metadata.get('format')!r})")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(metadata["header"])
    return Classifier(tensors, header["classes"], header["backbone"])
