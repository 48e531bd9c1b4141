"""The trained classifier as a small module that needs nothing but torch and safetensors.

`spinal export PROJECT --to model` puts a copy of this file beside the weights; use it like this:

    import standalone
    classifier = standalone.load("classifier.safetensors")
    probabilities, log_density = classifier(features)    # float32 [N, D], by classifier.backbone
    names = [classifier.classes[i] for i in probabilities.argmax(1)]

A sum-product network gives class probabilities, and the density of each point. Its input is the
features ``x [N, D]``, or the output of a dense layer on them. There may also be logistic
regression, trees, or the network's own softmax: then probabilities are a mixture of all.

If a point can have several classes, there is a classifier for each class, and probabilities need
not sum to 1: a point has the classes whose probability is above one half.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

#: The format of files, and earlier ones that can be read: without the power of the mixture.
FORMAT, EARLIER = "spinal.classifier/3", ("spinal.classifier/2",)


class Part(nn.Module):
    """Tensors by name, and a computation with them.

    Attributes:
        dtype: of all floating-point tensors.
    """

    dtype = torch.float32

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = list(tensors)
        for name, tensor in tensors.items():
            cast = tensor.to(self.dtype) if tensor.is_floating_point() else tensor
            self.register_buffer(_attribute(name), cast.contiguous())

    def tensor(self, name: str) -> Tensor:
        """One of ``tensors``."""
        return getattr(self, _attribute(name))


class Affine(Part):
    """``x [N, D]`` to ``(x - shift) @ weight + bias``, ``[N, K]``.

    Args:
        tensors: ``shift [D]``, ``weight [D, K]``, ``bias [K]``, and ``directed``: whether ``x`` is
            scaled to length 1 first.
    """

    dtype = torch.float64  # features may vary little around large means

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.is_directed = bool(tensors["directed"])

    def affine(self, x: Tensor) -> Tensor:
        """The result in float64."""
        x = x.double()
        if self.is_directed:
            x = nn.functional.normalize(x, dim=1)
        return (x - self.tensor("shift")) @ self.tensor("weight") + self.tensor("bias")

    def forward(self, x: Tensor) -> Tensor:
        return self.affine(x).to(x.dtype)


class Softmax(Affine):
    """``x [N, D]`` to class probabilities ``[N, C]``.

    Args:
        tensors: those of `Affine`, for logits, and ``unseen [C]``: the probabilities of classes
            without labels, 0 for the others.
    """

    def forward(self, x: Tensor) -> Tensor:
        unseen = self.tensor("unseen")
        return ((1 - unseen.sum()) * self.affine(x).softmax(1) + unseen).to(x.dtype)


class Trees(Part):
    """``x [N, D]`` to class probabilities ``[N, C]``, the mean over T trees.

    Args:
        tensors: over all nodes of all trees

            - ``roots [T]``: the first node of each tree;
            - ``feature, threshold [nodes]``: values up to the threshold go to the node ``left
              [nodes]``, others to ``right [nodes]``; a leaf leads to itself;
            - ``depth``: of the deepest tree;
            - ``probs [nodes, C]``: class probabilities at leaves;
            - ``prior [C]``: class probabilities that count as one more tree.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.steps = int(tensors["depth"])

    def forward(self, x: Tensor) -> Tensor:
        t = self.tensor
        node = t("roots").expand(x.size(0), -1)
        for _ in range(self.steps):
            above = x.gather(1, t("feature")[node]) > t("threshold")[node]
            node = torch.where(above, t("right")[node], t("left")[node])
        return (t("probs")[node].sum(1) + t("prior")) / (t("roots").size(0) + 1)


class SumProduct(Part):
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
        super().__init__(tensors)
        self.layers = sum(name.startswith("weights.") for name in tensors)

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
            # An extra cell of value 1 stands for missing children.
            x = torch.cat([x, torch.ones_like(x[:1])])[children].prod(1)
            m = torch.cat([m, torch.zeros_like(m[:1])])[children].sum(1)
            top = x.amax(-1)
            x, m = torch.bmm(x / top.unsqueeze(-1), t(f"weights.{i}")), m + top.log().double()
        top = m.amax(0)
        share = (m - top).exp().to(x.dtype)
        by_class = (x * share.unsqueeze(-1)).sum(0).log() + t("log_prior")
        log_density = by_class.logsumexp(1) + common + top
        return by_class.log_softmax(1), log_density.to(z.dtype)


#: The other members of the mixture, in the order of their weights after the circuit's.
OTHERS: dict[str, type[Part]] = {"logistic": Softmax, "trees": Trees, "network": Softmax}
#: All possible parts of a classifier.
PARTS: dict[str, type[Part]] = {
    "dense": Affine, "variables": Affine, "circuit": SumProduct, "mixture": Part, **OTHERS,
}  # fmt: skip


class Classifier(nn.Module):
    """Features ``[N, D]`` to class probabilities ``[N, C]`` and log-density ``[N]``.

    Args:
        tensors: those of its `PARTS`, by names such as ``circuit/log_prior``. ``circuit`` and
            ``mixture`` are required. With ``dense``, all others take ``relu(dense(x))``. With
            ``variables``, the circuit takes these. ``mixture`` has the ``weights [M]`` of the
            circuit and then of the `OTHERS`, the ``ratio [C]`` of class frequencies that
            predictions of the others are multiplied by, and, optionally, the ``power []`` of its
            predictions.
        classes: the names of the C classes.
        backbone: the encoder that must compute the features: its name, and the size of its images.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], classes: Sequence[str], backbone: Mapping[str, object]
    ) -> None:
        super().__init__()
        by_part: dict[str, dict[str, Tensor]] = {"circuit": {}, "mixture": {}}
        for path, tensor in tensors.items():
            part, _, name = path.partition("/")
            by_part.setdefault(part, {})[name] = tensor
        parts = {name: PARTS[name](part) for name, part in by_part.items()}
        self.parts = nn.ModuleDict(parts)
        self.names = [f"{part}/{name}" for part in parts for name in parts[part].names]
        self.classes, self.backbone = tuple(classes), dict(backbone)
        self.eval()

    def tensor(self, path: str) -> Tensor:
        """One of ``tensors``."""
        part, _, name = path.partition("/")
        return self.parts.get_buffer(f"{part}.{_attribute(name)}")

    def tensors(self) -> dict[str, Tensor]:
        """What it was made from."""
        return {path: self.tensor(path) for path in self.names}

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.parts
        x = torch.relu(parts["dense"](features)) if "dense" in parts else features
        variables = parts["variables"](x) if "variables" in parts else x
        log_probs, log_density = parts["circuit"](variables)
        weights, ratio = self.tensor("mixture/weights"), self.tensor("mixture/ratio")
        probs = weights[0] * log_probs.exp()
        for i, name in enumerate((name for name in OTHERS if name in parts), start=1):
            shifted = ratio * parts[name](x)
            probs = probs + weights[i] * shifted / shifted.sum(1, keepdim=True)
        if "mixture/power" in self.names:
            powered = ratio * (probs / ratio) ** self.tensor("mixture/power").to(probs.dtype)
            probs = powered / powered.sum(1, keepdim=True)
        return probs, log_density


class MultiClassifier(nn.Module):
    """Features ``[N, D]`` to the probability of each class ``[N, C]`` and log-density ``[N]``.

    The density is the geometric mean over the densities for the classes.

    Args:
        tensors: ``centre [D]``, the mean of the features, ``axes [D, R]``, the directions that are
            used, and, for each class i, the tensors of a `Classifier` with classes "absent" and
            "present", by names such as ``i/circuit/log_prior``.
        classes: the names of the C classes.
        backbone: see `Classifier`.
    """

    centre: Tensor
    axes: Tensor

    def __init__(
        self, tensors: Mapping[str, Tensor], classes: Sequence[str], backbone: Mapping[str, object]
    ) -> None:
        super().__init__()
        for name in ("centre", "axes"):
            self.register_buffer(name, tensors[name].double())
        own: list[dict[str, Tensor]] = [{} for _ in classes]
        for path, tensor in tensors.items():
            number, _, name = path.partition("/")
            if name:
                own[int(number)][name] = tensor
        self.members = nn.ModuleList([Classifier(t, ("absent", "present"), {}) for t in own])
        self.classes, self.backbone = tuple(classes), dict(backbone)
        self.eval()

    def tensors(self) -> dict[str, Tensor]:
        """What it was made from."""
        own = {
            f"{i}/{name}": tensor
            for i, member in enumerate(self.members)
            for name, tensor in member.tensors().items()  # type: ignore[operator]
        }
        return {"centre": self.centre, "axes": self.axes, **own}

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        z = ((features.double() - self.centre) @ self.axes).to(features.dtype)
        said = [member(z) for member in self.members]
        probs = torch.stack([probs[:, 1] for probs, _ in said], 1)
        return probs, torch.stack([density for _, density in said]).mean(0)


def build(
    tensors: Mapping[str, Tensor], classes: Sequence[str], backbone: Mapping[str, object]
) -> Classifier | MultiClassifier:
    """The classifier with these tensors."""
    kind = MultiClassifier if "axes" in tensors else Classifier
    return kind(tensors, classes, backbone)


def _attribute(name: str) -> str:
    return name.replace(".", "_")  # torch does not allow dots


def check(path: str | Path, metadata: Mapping[str, str]) -> None:
    """Check a file against the checksum in its header, computed with zeros in its place."""
    said = metadata.get("sha256", "")
    content = Path(path).read_bytes().replace(said.encode(), b"0" * 64, 1)
    if said and hashlib.sha256(content).hexdigest() != said:
        raise ValueError(f"{path}: damaged (its checksum is not the one in its header)")


def load(path: str | Path) -> Classifier | MultiClassifier:
    """Read a classifier; nothing is unpickled."""
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") not in (FORMAT, *EARLIER):
            raise ValueError(f"{path}: not a classifier (format {metadata.get('format')!r})")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    check(path, metadata)
    header = json.loads(metadata["header"])
    return build(tensors, header["classes"], header["backbone"])
