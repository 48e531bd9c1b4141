"""Sentence encoders: ``sentences:FOLDER`` and ``sentences:MODEL``.

A folder with an ONNX file needs only ONNX Runtime. Everything else is loaded by the package
sentence-transformers: a model of the Hugging Face Hub by its name, or a folder with its files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.encoders.encoder import EncoderError, hash_of_weights
from spinal.encoders.naming import EncoderName
from spinal.encoders.tfidf import read_text
from spinal.errors import first_line
from spinal.networks.network import choose_device

#: Tokens of a text that an ONNX model reads, unless the name gives another number
#: (``sentences:FOLDER@256``).
TOKENS = 128

#: A name on the Hugging Face Hub.
_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


class OnnxSentences:
    """The mean of a transformer's outputs over the tokens of a text, scaled to length 1.

    Args:
        folder: contains ``tokenizer.json`` and ``onnx/model.onnx`` (or ``model.onnx``).
        tokens: how many tokens of a text are read.

    Attributes:
        width: D, the length of a vector.
        fingerprint: a hash of both files and the number of tokens.
        model_file: the ONNX file.
        vocabulary_file: ``tokenizer.json``.

    Raises:
        EncoderError: if a file or a package is missing.
    """

    def __init__(self, folder: Path, tokens: int = TOKENS) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EncoderError(
                f"sentence encoders need packages: pip install 'spinal[text]' ({error})"
            ) from error
        model, vocabulary = _onnx_file(folder), folder / "tokenizer.json"
        if model is None or not vocabulary.is_file():
            raise EncoderError(f"{folder}: needs tokenizer.json and onnx/model.onnx")
        self.model_file, self.vocabulary_file = model, vocabulary
        self.name = f"sentences:{folder}@{tokens}"
        digest = hashlib.blake2b(f"{tokens}".encode(), digest_size=8)
        for path in (model, vocabulary):
            digest.update(path.read_bytes())
        self.fingerprint = digest.hexdigest()
        self._tokenizer: Any = Tokenizer.from_file(str(vocabulary))
        self._tokenizer.enable_truncation(tokens)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model), options)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.width = self.embed(["a"]).shape[1]

    def prepare(self, item: str | bytes) -> str:
        """The text."""
        return read_text(item)

    def tokenize(self, texts: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """The inputs of the model, each ``[N, T]``, for N texts; T is the length of the longest."""
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([tokens.ids for tokens in encoded], np.int64)
        mask = np.array([tokens.attention_mask for tokens in encoded], np.int64)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}

    def embed(self, prepared: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        inputs = self.tokenize(prepared)
        used = {name: value for name, value in inputs.items() if name in self._inputs}
        hidden_N_T_D = self._session.run(None, used)[0]
        mask = inputs["attention_mask"]
        mean = (hidden_N_T_D * mask[..., None]).sum(1) / mask.sum(1, keepdims=True).clip(1)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True).clip(1e-12)).astype(np.float32)


class HubSentences:
    """A model of the package sentence-transformers, with vectors scaled to length 1.

    Args:
        model: a name on the Hugging Face Hub, such as ``BAAI/bge-small-en-v1.5``, or a folder. The
            files are downloaded once. Code that comes with a model is not run.
        tokens: how many tokens of a text are read; None takes the model's own number.
        device: ``auto`` takes an accelerator if there is one.

    Attributes:
        width: D, the length of a vector.
        fingerprint: a hash of the name, the number of tokens and all weights.

    Raises:
        EncoderError: if the package is missing, or the model cannot be loaded.
    """

    def __init__(self, model: str, tokens: int | None = None, device: str = "auto") -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EncoderError(
                f"sentences:{model}: not a folder with an ONNX file, and other models need "
                f"packages: pip install 'spinal[text]' ({error})"
            ) from error
        try:
            self._model: Any = SentenceTransformer(model, device=str(choose_device(device)))
        except Exception as error:  # a download can fail in many ways
            raise EncoderError(
                f"sentences:{model}: cannot be loaded ({first_line(error)}); without a "
                "connection, give a folder with tokenizer.json and onnx/model.onnx"
            ) from error
        if tokens is not None:
            self._model.max_seq_length = tokens
        self.name = f"sentences:{model}" + (f"@{tokens}" if tokens else "")
        self.fingerprint = hash_of_weights(self.name, self._model.state_dict())
        self.width = self.embed(["a"]).shape[1]

    def prepare(self, item: str | bytes) -> str:
        """The text."""
        return read_text(item)

    def embed(self, prepared: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        vectors = self._model.encode(
            list(prepared), normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32)


def load(name: EncoderName) -> OnnxSentences | HubSentences:
    """The encoder in a folder, or of that name on the Hugging Face Hub."""
    model = name.plain.removeprefix("sentences:")
    folder = Path(model).expanduser()
    if _onnx_file(folder) is not None:
        return OnnxSentences(folder, name.size or TOKENS)
    if not _NAME.fullmatch(model) and not (model and folder.is_dir()):
        raise EncoderError(f"sentences:{model}: no such folder, and not a name like ORG/MODEL")
    return HubSentences(str(folder) if folder.is_dir() else model, name.size, name.device)


def _onnx_file(folder: Path) -> Path | None:
    places = (folder / "onnx/model.onnx", folder / "model.onnx")
    return next((path for path in places if path.is_file()), None)
