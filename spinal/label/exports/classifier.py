"""The trained classifier of images, independent of the learner: on disk, and as ONNX.

Network and posterior are converted to one module of plain operations
(`spinal.label.exports.standalone`), which must give the same predictions. That module is saved,
predicts, and is exported to ONNX.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from spinal.classifiers.multi import MultiBlend
from spinal.encoders import ImageEncoder, build_trunk, load_encoder
from spinal.encoders.images import require_images
from spinal.encoders.table import is_own_code
from spinal.errors import FileFormatError, SpinalError
from spinal.files import read_tensors, replacing, write_tensors
from spinal.label.exports import standalone
from spinal.label.exports.modules import (
    FeatureClassifier,
    dense_module,
    multi_module,
    predict_by_posterior,
)
from spinal.label.exports.onnx_file import check_equal, write_onnx
from spinal.networks import Network
from spinal.posteriors import SPN

FILE = "classifier.safetensors"
#: The weights of the encoder, in the same folder, if it was trained too.
TRUNK = "trunk.safetensors"


class ImageClassifier(FeatureClassifier[ImageEncoder]):
    """An encoder of images, and the classifier of its features."""

    @classmethod
    def from_dense_network(
        cls, network: Network, posterior: SPN, classes: Sequence[str], encoder: ImageEncoder
    ) -> ImageClassifier:
        """The classifier of a network that was fitted to the features of an encoder.

        Args:
            network: one dense layer.
            posterior: fitted with it.
            classes: names of the classes.
            encoder: computes the features.

        Raises:
            ExportError: if the network has other layers, the encoder has another number of
                features, or the classifier's predictions differ from the model's.
        """
        return cls(encoder, dense_module(network, posterior, classes, encoder, _described(encoder)))

    @classmethod
    def from_whole_network(
        cls, network: Network, posterior: SPN, classes: Sequence[str], like: ImageEncoder | str
    ) -> ImageClassifier:
        """The classifier of a network that was trained on images.

        The network without its last layer becomes the encoder, with its own weights.

        Args:
            network: see `spinal.encoders.trained`.
            posterior: fitted to its features.
            classes: names of the classes.
            like: the encoder that was fine-tuned, or the name of a network trained from scratch.

        Raises:
            ExportError: if the classifier's predictions differ from the model's.
        """
        network = copy.deepcopy(network).cpu()
        size = int((network.preprocess.input_shape or (0,))[0])
        trunk = build_trunk(network)
        if isinstance(like, str):
            encoder = ImageEncoder(f"{like}={TRUNK}", trunk, size)
        else:
            name = f"{like.name.partition('=')[0]}={TRUNK}"
            encoder = ImageEncoder(name, trunk, size, resample=like.resample, source=like.source)
        tensors = posterior.to_plain_arrays(network)
        module = standalone.Classifier(tensors, classes, _described(encoder))
        classifier = cls(encoder, module)
        images = np.random.default_rng(0).integers(0, 256, (8, size, size, 3), np.uint8)
        said = classifier.predict(encoder.embed(images))
        check_equal(said, predict_by_posterior(network, posterior, images), "the model")
        return classifier

    @classmethod
    def from_multi(
        cls, model: MultiBlend, classes: Sequence[str], encoder: ImageEncoder
    ) -> ImageClassifier:
        """The classifier where an image can have several classes; see `multi_module`."""
        return cls(encoder, multi_module(model, classes, encoder, _described(encoder)))

    @property
    def has_own_trunk(self) -> bool:
        """Whether the encoder was trained too."""
        return self.encoder.name.endswith(f"={TRUNK}")

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, atomically.

        It contains only the name of the encoder. If the encoder was trained too, its weights are in
        a second file in the same folder, `TRUNK`.
        """
        path = Path(path)
        if self.has_own_trunk:
            self.encoder.save_weights(path.with_name(TRUNK))
        header = {"classes": list(self.classes), "backbone": self.module.backbone}
        write_tensors(path, self.module.tensors(), standalone.FORMAT, header)

    @classmethod
    def load(cls, path: str | Path, encoder: ImageEncoder | None = None) -> ImageClassifier:
        """Read a file that `save` wrote. Nothing is unpickled.

        Args:
            path: the file.
            encoder: needed if it is your own module: code named in a file is never run.
        """
        path = Path(path)
        header, tensors = read_tensors(path, standalone.FORMAT, *standalone.EARLIER)
        try:
            module = standalone.build(tensors, header["classes"], header["backbone"])
            name = str(header["backbone"]["name"])
            fingerprint = header["backbone"]["fingerprint"]
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}: damaged ({error!r})") from error
        if encoder is None:
            if is_own_code(name):
                raise SpinalError(f"{path} is for features by {name}: load and pass that encoder")
            if name.endswith(f"={TRUNK}"):
                name = name.removesuffix(TRUNK) + str(path.with_name(TRUNK))
            encoder = require_images(load_encoder(name))
        if encoder.fingerprint != fingerprint:
            raise SpinalError(
                f"{path} was trained on features by {name} with other weights than those of "
                f"{encoder.name} here"
            )
        return cls(encoder, module)

    def to_onnx(self, path: str | Path, *, images: bool = True) -> None:
        """Write an ONNX file, and check that onnxruntime computes the same with it.

        Its outputs are ``probabilities [N, C]`` and ``log_density [N]``. Its metadata has the names
        of the classes, and how to prepare images.

        Args:
            path: the file, which is written atomically.
            images: the input is ``pixels``, uint8 ``[N, S, S, 3]``, as `ImageEncoder.prepare` makes
                them; otherwise ``features``, float32 ``[N, D]``.
        """
        size = self.encoder.size
        if images:
            module: nn.Module = _FromPixels(self.encoder.trunk, self.module)
            pixels = np.random.default_rng(0).integers(0, 256, (3, size, size, 3), np.uint8)
            sample = torch.from_numpy(pixels)
        else:
            module = self.module
            sample = torch.randn(3, self.encoder.width, generator=torch.Generator())
        with replacing(Path(path)) as partial:
            write_onnx(module, sample, "pixels" if images else "features", partial, self._notes())

    def _notes(self) -> dict[str, str]:
        """The metadata of the ONNX file."""
        described = {key: str(value) for key, value in self.module.backbone.items()}
        return {"classes": "\n".join(self.classes), **described}


class _FromPixels(nn.Module):
    """From pixels ``[N, S, S, 3]`` to the output of the classifier."""

    def __init__(self, trunk: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.trunk, self.classifier = trunk, classifier

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return self.classifier(self.trunk(pixels))


def _described(encoder: ImageEncoder) -> dict[str, object]:
    return {
        "name": encoder.name,
        "size": encoder.size,
        "resample": encoder.resample.name.lower(),
        "fingerprint": encoder.fingerprint,
    }
