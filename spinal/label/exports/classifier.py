"""The trained classifier, free of the learner that made it: on disk, and as ONNX.

Network and circuit are restated in plain operations (`spinal.label.exports.standalone`), and
checked to say the same as the learner. That module is what is saved, what predicts, and what ONNX
is made of.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spinal.circuits import Circuit
from spinal.data import Points, as_points, iter_batches
from spinal.encoders import Backbone, cut_last_layer, load_backbone
from spinal.encoders.catalogue import is_own_code
from spinal.errors import FileFormatError, SpinalError
from spinal.files import read_tensors, replacing, write_tensors
from spinal.label.exports import standalone
from spinal.networks import Network, compute_features

FILE = "classifier.safetensors"
#: Beside it: the weights of a backbone that was trained, too.
TRUNK = "trunk.safetensors"
#: How far probabilities may be from those of the learner, or of another runtime.
TOLERANCE = 1e-4


class ExportError(SpinalError):
    """A classifier that cannot be put into the wanted form, or would not say the same in it."""


class ImageClassifier:
    """A backbone, and the classifier of its features.

    Args:
        backbone: what computes the features.
        module: what takes them further.
    """

    def __init__(self, backbone: Backbone, module: standalone.Classifier) -> None:
        self.backbone, self.module = backbone, module

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.module.classes

    @classmethod
    def restate(
        cls, network: Network, circuit: Circuit, classes: Sequence[str], backbone: Backbone
    ) -> ImageClassifier:
        """The classifier of a learner that was fitted on features of the backbone.

        Raises:
            ExportError: if the network is not one dense layer on them, or the restated classifier
                does not say the same.
        """
        tensors = {**_dense(network), **restated(circuit)}
        module = standalone.Classifier(tensors, classes, _described(backbone))
        classifier = cls(backbone, module)
        if (len(module.mean), circuit.n_classes) != (backbone.features, len(classes)):
            raise ExportError(
                f"a model of {circuit.n_classes} classes on {len(module.mean)} features, but "
                f"{backbone.name} has {backbone.features}, and there are {len(classes)} classes"
            )
        noise = torch.randn(64, backbone.features, generator=torch.Generator().manual_seed(0))
        features = (module.mean + module.std * noise).numpy()
        with torch.no_grad():
            expected = circuit.log_posterior(compute_features(network, features)).exp().numpy()
        _check_equal(classifier.predict(features)[0], expected, "the model")
        return classifier

    @classmethod
    def restate_whole(
        cls, network: Network, circuit: Circuit, classes: Sequence[str], like: Backbone | str
    ) -> ImageClassifier:
        """The classifier of a learner whose whole network was trained, on images.

        All of the network but its last layer becomes the backbone, with weights of its own.

        Args:
            network: see `spinal.encoders.trained`.
            circuit: on its features.
            classes: their names.
            like: the backbone that was fine-tuned, or the name of what was trained from scratch.
        """
        trunk, weight, bias = cut_last_layer(copy.deepcopy(network).cpu())
        size = int((network.preprocess.input_shape or (0,))[0])
        if isinstance(like, str):
            backbone = Backbone(f"{like}={TRUNK}", trunk, size)
        else:
            name = f"{like.name.partition('=')[0]}={TRUNK}"
            backbone = Backbone(name, trunk, size, resample=like.resample, source=like.source)
        features = weight.size(1)
        tensors = {
            "mean": torch.zeros(features), "std": torch.ones(features),
            "dense": weight.contiguous(), "bias": bias.contiguous(), **restated(circuit),
        }  # fmt: skip
        classifier = cls(backbone, standalone.Classifier(tensors, classes, _described(backbone)))
        images = np.random.default_rng(0).integers(0, 256, (8, size, size, 3), np.uint8)
        with torch.no_grad():
            expected = circuit.log_posterior(compute_features(network, images)).exp().numpy()
        _check_equal(classifier.predict(backbone.embed(images))[0], expected, "the model")
        return classifier

    @property
    def has_own_trunk(self) -> bool:
        """Whether the backbone was trained, too."""
        return self.backbone.name.endswith(f"={TRUNK}")

    def predict(
        self, features: Points | NDArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class probabilities ``[N, C]`` and log-densities ``[N]`` for features ``[N, D]``."""
        points = as_points(features)
        probabilities = [np.empty((0, len(self.classes)), np.float32)]
        densities = [np.empty(0, np.float32)]
        with torch.inference_mode():
            for batch in iter_batches(points, np.arange(len(points)), 128):
                probs, density = self.module(torch.from_numpy(batch))
                probabilities.append(probs.numpy())
                densities.append(density.numpy())
        return np.concatenate(probabilities), np.concatenate(densities)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: there whole, or not at all.

        The backbone is only named, unless it was trained, too: then its weights are in a second
        file in the same folder, `TRUNK`.
        """
        path = Path(path)
        if self.has_own_trunk:
            self.backbone.save_weights(path.with_name(TRUNK))
        header = {"classes": list(self.classes), "backbone": self.module.backbone}
        write_tensors(path, self.module.tensors(), standalone.FORMAT, header)

    @classmethod
    def load(cls, path: str | Path, backbone: Backbone | None = None) -> ImageClassifier:
        """Read what `save` wrote. Nothing is unpickled.

        Args:
            path: the file.
            backbone: needed if it is your own module: no code is run because a file names it.
        """
        path = Path(path)
        header, tensors = read_tensors(path, standalone.FORMAT)
        try:
            module = standalone.Classifier(tensors, header["classes"], header["backbone"])
            name = str(header["backbone"]["name"])
            fingerprint = header["backbone"]["fingerprint"]
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}: damaged ({error!r})") from error
        if backbone is None:
            if is_own_code(name):
                raise SpinalError(f"{path} is for features by {name}: load and give that backbone")
            if name.endswith(f"={TRUNK}"):
                name = name.removesuffix(TRUNK) + str(path.with_name(TRUNK))
            backbone = load_backbone(name)
        if backbone.fingerprint != fingerprint:
            raise SpinalError(
                f"{path} was trained on features by {name} with other weights than those that "
                f"{backbone.name} has here"
            )
        return cls(backbone, module)

    def to_onnx(self, path: str | Path, *, images: bool = True) -> None:
        """Write an ONNX file, and check that onnxruntime computes the same with it.

        Its outputs are ``probabilities [N, C]`` and ``log_density [N]``. The names of the classes
        and how to prepare images are in its metadata.

        Args:
            path: the file; there whole, or not at all.
            images: the input is ``pixels``, uint8 ``[N, S, S, 3]``, as `Backbone.prepare` makes
                them; otherwise ``features``, float32 ``[N, D]``.
        """
        size = self.backbone.size
        if images:
            module: nn.Module = _FromPixels(self.backbone.trunk, self.module)
            pixels = np.random.default_rng(0).integers(0, 256, (3, size, size, 3), np.uint8)
            sample = torch.from_numpy(pixels)
        else:
            module = self.module
            sample = torch.randn(3, self.backbone.features, generator=torch.Generator())
        with replacing(Path(path)) as partial:
            write_onnx(module, sample, "pixels" if images else "features", partial, self._notes())

    def _notes(self) -> dict[str, str]:
        """What goes into the metadata of an ONNX file."""
        described = {key: str(value) for key, value in self.module.backbone.items()}
        return {"classes": "\n".join(self.classes), **described}


class _FromPixels(nn.Module):
    """Pixels ``[N, S, S, 3]`` to what the classifier says."""

    def __init__(self, trunk: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.trunk, self.classifier = trunk, classifier

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return self.classifier(self.trunk(pixels))


def restated(circuit: Circuit) -> dict[str, Tensor]:
    """The parameters of a circuit as `standalone.SumProduct` wants them."""
    if circuit.exact_logs:
        raise ExportError("a circuit without a floor under its weights cannot be exported")
    leaves = circuit.leaves
    with torch.no_grad():
        theta = circuit.evaluate()
        linear, constant, *square = theta.natural.eta
        cells, width = len(linear), leaves.variables.size(2)
        slots = leaves.variables.view(cells, width)
        tensors = {
            "shift": leaves.shift + leaves.stretch * theta.natural.centre,
            "stretch": leaves.stretch,
            "square": theta.natural.common,
            "slots": torch.where(slots < 0, circuit.n_features, slots),
            "eta.0": constant.sum(1, keepdim=True),
            "eta.1": linear,
            "log_prior": theta.log_prior,
        }
        if square:
            tensors["eta.2"] = square[0]
        for i, (layer, mixtures) in enumerate(zip(circuit.layers, theta.mixtures, strict=True)):
            tensors[f"children.{i}"] = _children(layer.product.parents(layer.cells))
            tensors[f"weights.{i}"] = mixtures.transpose(1, 2)
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def write_onnx(
    module: nn.Module, sample: Tensor, name: str, path: Path, notes: dict[str, str]
) -> None:
    """Export a module with one input, whose first dimension is free, and compare the outputs."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch.onnx needs it
    except ImportError as error:
        raise ExportError(
            f"ONNX needs more packages: pip install 'spinal[onnx]' ({error})"
        ) from error
    # It says for each operator of torchvision that it cannot be exported without torchvision.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    module = module.cpu().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its own future
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
            expected = module(part)[0].numpy()
        found = session.run(["probabilities"], {name: part.numpy()})[0]
        _check_equal(found, expected, "PyTorch")


def _dense(network: Network) -> dict[str, Tensor]:
    layers = [
        layer for layer in network.body.children() if not isinstance(layer, nn.Flatten | nn.Dropout)
    ]
    if [type(layer) for layer in layers] != [nn.Linear, nn.ReLU]:
        raise ExportError("only a network of one dense layer, on features, can be exported")
    dense = layers[0]
    assert isinstance(dense, nn.Linear)
    tensors = {
        "mean": network.preprocess.mean.expand(dense.in_features),
        "std": network.preprocess.std.expand(dense.in_features),
        "dense": dense.weight,
        "bias": dense.bias,
    }
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _children(parents: Tensor) -> Tensor:
    """``[A', A]`` booleans as indices ``[A', J]``, filled up with A."""
    rows = [row.nonzero().flatten() for row in parents]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=parents.size(1))


def _described(backbone: Backbone) -> dict[str, object]:
    return {
        "name": backbone.name,
        "size": backbone.size,
        "resample": backbone.resample.name.lower(),
        "fingerprint": backbone.fingerprint,
    }


def _check_equal(found: NDArray, expected: NDArray, whose: str) -> None:
    difference = float(np.abs(found - expected).max())
    if not difference <= TOLERANCE:
        raise ExportError(
            f"the exported classifier differs from {whose} by {difference:.2g} in a probability"
        )
