"""The trained classifier of texts, with its encoder, for use elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spinal.classifiers.multi import MultiBlend
from spinal.encoders import Encoder, encode, load_encoder, words
from spinal.encoders.sentences import OnnxSentences
from spinal.encoders.table import is_own_code
from spinal.encoders.tfidf import NAME, TfidfEncoder
from spinal.errors import FileFormatError, SpinalError
from spinal.files import read_tensors, replacing, write_tensors, write_text
from spinal.label.exports import standalone
from spinal.label.exports.classifier import FILE
from spinal.label.exports.modules import FeatureClassifier, dense_module, multi_module
from spinal.label.exports.onnx_file import write_onnx
from spinal.label.exports.onnx_texts import prepend_encoder
from spinal.networks import Network
from spinal.posteriors import SPN

#: The fitted TF-IDF encoder, in the same folder as `FILE`.
WORDS = "words.safetensors"


class TextClassifier(FeatureClassifier[Encoder]):
    """An encoder of texts, and the classifier of its features."""

    @classmethod
    def join(
        cls, network: Network, posterior: SPN, classes: Sequence[str], encoder: Encoder
    ) -> TextClassifier:
        """The classifier of a network on the features of an encoder; see `dense_module`."""
        described = {"name": encoder.name, "fingerprint": encoder.fingerprint}
        return cls(encoder, dense_module(network, posterior, classes, encoder, described))

    @classmethod
    def from_multi(
        cls, model: MultiBlend, classes: Sequence[str], encoder: Encoder
    ) -> TextClassifier:
        """The classifier where a text can have several classes; see `multi_module`."""
        described = {"name": encoder.name, "fingerprint": encoder.fingerprint}
        return cls(encoder, multi_module(model, classes, encoder, described))

    def predict_texts(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class probabilities ``[N, C]`` and log-densities ``[N]`` for texts."""
        return self.predict(encode(self.encoder, texts))

    def save(self, folder: Path) -> list[Path]:
        """Write the classifier, the modules that read it, and ONNX.

        With TF-IDF, the words and the module that encodes texts are written too, and the ONNX model
        takes counts of these words. If the encoder is an ONNX model itself, it becomes part of the
        ONNX model, which takes tokens, and ``tokenizer.json`` is written too. Of other encoders
        only the name is stored, and the ONNX model takes their features.

        Returns:
            The files that were written.

        Raises:
            ExportError: if the packages for ONNX are missing; the other files are written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        header = {"classes": list(self.classes), "backbone": self.module.backbone}
        write_tensors(folder / FILE, self.module.tensors(), standalone.FORMAT, header)
        modules = [standalone]
        written = [folder / FILE]
        if isinstance(self.encoder, TfidfEncoder):
            modules.append(words)
            written.append(folder / WORDS)
            self.encoder.save(written[-1])
        if isinstance(self.encoder, OnnxSentences):
            written.append(folder / self.encoder.vocabulary_file.name)
            write_text(written[-1], self.encoder.vocabulary_file.read_text(encoding="utf-8"))
        for module in modules:
            written.append(folder / f"{module.__name__.rpartition('.')[2]}.py")
            source = Path(str(module.__file__)).read_text(encoding="utf-8")
            write_text(written[-1], source)
        written.append(folder / "classifier.onnx")
        self.to_onnx(written[-1])
        return written

    @classmethod
    def load(cls, path: Path) -> TextClassifier:
        """Read what `save` wrote; ``path`` is that of `FILE`. Nothing is unpickled.

        Raises:
            FileFormatError: if it is damaged.
            SpinalError: if the encoder differs from the one used for training.
        """
        header, tensors = read_tensors(path, standalone.FORMAT, *standalone.EARLIER)
        try:
            module = standalone.build(tensors, header["classes"], header["backbone"])
            name, fingerprint = (str(header["backbone"][key]) for key in ("name", "fingerprint"))
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}: damaged ({error!r})") from error
        if name == NAME:
            encoder: Encoder = TfidfEncoder.load(path.with_name(WORDS))
        elif is_own_code(name):
            raise SpinalError(f"{path} is for features by {name}, which is your own code")
        else:
            encoder = load_encoder(name)
        if encoder.fingerprint != fingerprint:
            raise SpinalError(f"{path}: was trained on features by another {name}")
        return cls(encoder, module)

    def to_onnx(self, path: Path) -> None:
        """Write an ONNX file, and check that onnxruntime computes the same with it.

        Its input is ``counts``, float32 ``[N, V]``, of the V words of TF-IDF; with an ONNX encoder
        its tokens (see `prepend_encoder`); with others ``features``, float32 ``[N, D]``. Its
        metadata has the names of the classes.
        """
        notes = {key: str(value) for key, value in self.module.backbone.items()}
        notes["classes"] = "\n".join(self.classes)
        module: nn.Module = self.module
        name = "features"
        sample = torch.randn(3, self.encoder.width, generator=torch.Generator().manual_seed(0))
        if isinstance(self.encoder, TfidfEncoder):
            module, name = _FromCounts(self.encoder.words, self.module), "counts"
            n_words = len(self.encoder.words.vocabulary)
            drawn = np.random.default_rng(0).poisson(0.05, (3, n_words))
            sample = torch.from_numpy(drawn.astype(np.float32))
        with replacing(path) as partial:
            write_onnx(module, sample, name, partial, notes)
            if isinstance(self.encoder, OnnxSentences):
                prepend_encoder(partial, self.encoder)


class _FromCounts(nn.Module):
    """From counts of words ``[N, V]`` to the output of the classifier; see `words.Words`."""

    idf: Tensor
    components: Tensor

    def __init__(self, fitted: words.Words, classifier: nn.Module) -> None:
        super().__init__()
        self.register_buffer("idf", torch.from_numpy(fitted.idf))
        self.register_buffer("components", torch.from_numpy(fitted.components))
        self.classifier = classifier

    def forward(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.where(counts > 0, 1 + counts.clamp_min(1).log(), 0.0) * self.idf
        return self.classifier(nn.functional.normalize(weights) @ self.components)
